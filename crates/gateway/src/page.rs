//! `[page]`: how the gateway is doing, for whoever looks: its peers now, and the last ten minutes as curves. It can be read, and nothing
//! else.
//!
//! `/moments` is a stream of server-sent events (HTML Standard, 9.2), lists of moments: first all that are kept, then each as it comes. A
//! reader that comes back says which it had last, and gets the rest.

use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time;

use base::Duration;

use crate::clock;
use crate::config::{Page, Token};
use crate::history::{History, Moment};
use crate::http::{self, Listener, PLAIN, Place, Request, respond};

/// Between two moments.
const EVERY: Duration = Duration::from_secs(1);
/// A status that took long is asked for this many times its own span later: a hub with thousands of peers has other work.
const SHARE: u64 = 20;
/// But this is the longest pause.
const SELDOM: Duration = Duration::from_secs(10);
/// Readers who stay. Others are answered all the same.
const MOST_READERS: usize = 16;
/// Moments that are sent at once: a reader's buffer is bounded, whoever reads slowly.
const MOST_AT_ONCE: usize = 60;
/// After so long without news a comment says that the connection lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// A page may use what comes from here, and nothing from elsewhere.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:";

const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page/page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
];

/// What all who look share.
#[derive(Debug, Default)]
struct Watched {
    history: Mutex<History>,
    news: Condvar,
    readers: Arc<AtomicUsize>,
}

/// Shows the gateway of this device from now on, until the process ends.
///
/// # Errors
/// There is no room for a thread.
pub(crate) fn start(listener: Listener, page: &Page, device: String) -> io::Result<()> {
    let watched = Arc::new(Watched::default());
    let guard = Guard { listen: page.listen, token: page.token.clone() };
    let begin = {
        let watched = Arc::clone(&watched);
        // Who looks for the first time sees ten minutes too. Without a thread there are no news, which the page says.
        move || drop(Builder::new().name("history".to_owned()).spawn(move || watched.follow(&device)))
    };
    listener.start("page", begin, move |stream, request| match guard.judge(request) {
        Judged::Welcome if request.path == "/moments" => watched.tell(stream, last_seen(&request.last_event)),
        Judged::Welcome => file(stream, &request.path),
        Judged::Known(cookie) => {
            let headers = [("Location", "/"), ("Set-Cookie", &*cookie)];
            respond(stream, "303 See Other", &headers, "")
        }
        Judged::Refused(status, reason) => respond(stream, status, &[("Content-Type", PLAIN)], reason),
    })
}

/// The moment that a reader had last; one that says nothing, or nonsense, had none. What is no number is no time to wait for either.
fn last_seen(event: &str) -> f64 {
    event.parse().ok().filter(|at: &f64| at.is_finite()).unwrap_or(0.0)
}

fn file(stream: &mut TcpStream, path: &str) -> io::Result<()> {
    match FILES.iter().find(|(known, _, _)| *known == path) {
        Some((_, kind, text)) => {
            let headers = [
                ("Content-Type", *kind),
                ("Content-Security-Policy", POLICY),
                ("Cache-Control", "no-cache"),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
            ];
            respond(stream, "200 OK", &headers, text)
        }
        None => respond(stream, "404 Not Found", &[("Content-Type", PLAIN)], "there is /\n"),
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the gateway again and again.
    fn follow(&self, device: &str) {
        loop {
            let began = clock::monotonic();
            if let Some(status) = http::ask(device) {
                self.lock().take(&status, clock::seconds_of_day());
                self.news.notify_all();
            }
            let took = clock::monotonic().saturating_since(began);
            clock::sleep(EVERY.saturating_sub(took).max((took * SHARE).min(SELDOM)));
        }
    }

    /// Sends what is kept and newer than `since`, and then each moment as it comes, until the reader goes away.
    fn tell(&self, stream: &mut TcpStream, since: f64) -> io::Result<()> {
        let Some(_place) = Place::take(&self.readers, MOST_READERS) else {
            return respond(
                stream,
                "503 Service Unavailable",
                &[("Content-Type", PLAIN)],
                "too many readers\n",
            );
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        let mut seen = since;
        loop {
            let text = {
                let wait = time::Duration::from_nanos(SIGN_OF_LIFE.as_nanos());
                // Not "later": the clock may have been set back, and then all that is kept is news.
                let is_old =
                    |history: &mut History| history.moments().next_back().is_none_or(|last| last.at == seen);
                let (history, _) = self
                    .news
                    .wait_timeout_while(self.lock(), wait, is_old)
                    .unwrap_or_else(PoisonError::into_inner);
                let was_set_back = history.moments().next_back().is_some_and(|last| last.at < seen);
                let after = if was_set_back { 0.0 } else { seen };
                let news = history.moments().filter(|moment| moment.at > after).take(MOST_AT_ONCE);
                let news: Vec<&Moment> = news.collect();
                match news.last() {
                    Some(last) => {
                        seen = last.at;
                        format!("id: {seen}\nevent: moments\ndata: {}\n\n", serde_json::to_string(&news)?)
                    }
                    None => ":\n\n".to_owned(),
                }
            };
            stream.write_all(text.as_bytes())?;
        }
    }
}

/// Who may look.
#[derive(Debug)]
struct Guard {
    listen: SocketAddr,
    token: Option<Token>,
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Welcome,
    /// The token was right; this cookie keeps it out of addresses from now on.
    Known(String),
    Refused(&'static str, &'static str),
}

impl Guard {
    fn judge(&self, request: &Request) -> Judged {
        // A page of somebody else's could have its own name point here, and read what it likes.
        if !is_address(&request.host) {
            return Judged::Refused("403 Forbidden", "ask for this page by an IP address, or as localhost\n");
        }
        let Some(token) = &self.token else { return Judged::Welcome };
        let given = request.query.split('&').find_map(|part| part.strip_prefix("token="));
        // Cookies do not tell ports apart: another gateway's has another name.
        let cookie = format!("longhaul-{}", self.listen.port());
        let kept =
            request.cookies.split(';').find_map(|part| part.trim().strip_prefix(&cookie)?.strip_prefix('='));
        match (given, kept) {
            (_, Some(kept)) if token.is(kept) => Judged::Welcome,
            (Some(given), _) if token.is(given) => {
                Judged::Known(format!("{cookie}={given}; HttpOnly; SameSite=Lax; Path=/"))
            }
            _ => Judged::Refused("401 Unauthorized", "this page takes its token, as in /?token=...\n"),
        }
    }
}

/// Whether a host, perhaps with a port, is an address rather than a name that anybody may own.
fn is_address(host: &str) -> bool {
    let without_port =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let bare = without_port.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: &str, query: &str, cookies: &str) -> Request {
        let [host, query, cookies] = [host, query, cookies].map(str::to_owned);
        Request { path: "/".to_owned(), query, host, cookies, last_event: String::new() }
    }

    fn guard(token: Option<&str>) -> Guard {
        let token = token.map(|token| token.parse().unwrap());
        Guard { listen: "192.0.2.1:9470".parse().unwrap(), token }
    }

    #[test]
    fn names_are_refused_since_anybody_may_own_one() {
        for host in ["127.0.0.1:9470", "localhost", "LOCALHOST:9470", "[::1]:9470", "[::1]", "192.0.2.1"] {
            assert_eq!(guard(None).judge(&request(host, "", "")), Judged::Welcome, "{host}");
        }
        for host in
            ["evil.example", "evil.example:9470", "", "127.0.0.1.evil.example", "localhost.evil.example:80"]
        {
            assert!(
                matches!(guard(None).judge(&request(host, "", "")), Judged::Refused("403 Forbidden", _)),
                "{host}"
            );
        }
    }

    #[test]
    fn a_token_is_taken_once_and_kept_as_a_cookie() {
        let guard = guard(Some("0123456789abcdef"));
        let judge = |query: &str, cookies: &str| guard.judge(&request("192.0.2.1:9470", query, cookies));
        for (query, cookies) in [
            ("", ""),
            ("token=0123456789abcdeF", ""),
            ("token=", "longhaul-9470="),
            ("", "longhaul-9471=0123456789abcdef"),
            ("", "longhaul-94700=0123456789abcdef"),
        ] {
            assert!(
                matches!(judge(query, cookies), Judged::Refused("401 Unauthorized", _)),
                "{query} {cookies}"
            );
        }
        let Judged::Known(cookie) = judge("a=b&token=0123456789abcdef", "") else {
            panic!("it is the token")
        };
        let kept = cookie.split(';').next().unwrap();
        assert_eq!(judge("", &format!("other=1; {kept}")), Judged::Welcome);
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));
    }

    #[test]
    fn a_reader_had_a_moment_or_none() {
        assert_eq!(last_seen("1795801755.25"), 1_795_801_755.25);
        for nonsense in ["", "NaN", "inf", "-inf", "1e999", "seven"] {
            assert_eq!(last_seen(nonsense), 0.0, "{nonsense}");
        }
    }

    #[test]
    fn files_are_whole_and_use_nothing_from_elsewhere() {
        for (path, _, text) in FILES {
            // The one address is a name, which nobody asks for.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(text.len() > 300 && !text.contains("://"), "{path}");
        }
        assert!(FILES[0].2.contains("href=\"/page.css\"") && FILES[0].2.contains("src=\"/page.js\""));
    }
}
