//! A little HTTP for pages that a gateway shows: requests for something, an answer each, and nothing that changes anything (RFC 9112).
//!
//! Threads of their own answer, without any rights. They ask the gateway as `longhaul gateway status` does, so that readers take no more of
//! the packets' time than that.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time;

use base::Duration;
use socket2::{Domain, SockRef, Socket, Type};

use crate::clock;
use crate::daemon::{Status, query};
use crate::privileges::{self, Kept};

/// Where requests come, opened while there is a right to low ports.
#[derive(Debug)]
pub(crate) struct Listener(TcpListener);

/// A request: always a GET.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Without what follows a question mark.
    pub(crate) path: String,
    /// What follows it.
    pub(crate) query: String,
    /// Whom the client believes to ask.
    pub(crate) host: String,
    /// All cookies, as they come.
    pub(crate) cookies: String,
    /// Of a stream of events that broke off: the last that came.
    pub(crate) last_event: String,
}

/// For a request to come, and for an answer to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients that wait to be heard.
const BACKLOG: libc::c_int = 128;
/// Bytes of a request's head, at most.
const MOST_HEAD: usize = 8192;
/// Headers of a request, at most.
const MOST_HEADERS: usize = 64;
/// Who may be answered at the same time.
const MOST_CLIENTS: usize = 32;
/// For so long a client that has vanished is believed to be there.
const VANISHED: Duration = Duration::from_secs(20);

/// Plain text.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

impl Listener {
    /// Listens at `at`.
    ///
    /// # Errors
    /// An address that is not ours or is taken.
    pub(crate) fn bind(at: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        // An address that no device has yet is no reason not to start.
        match at {
            SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
            SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
        }
        socket.bind(&at.into())?;
        socket.listen(BACKLOG)?;
        Ok(Self(socket.into()))
    }

    /// Has each request answered by `answer` from now on, until the process ends. `begin` runs once, before the first.
    ///
    /// # Errors
    /// There is no room for a thread.
    pub(crate) fn start<A>(
        self,
        name: &str,
        begin: impl FnOnce() + Send + 'static,
        answer: A,
    ) -> io::Result<()>
    where
        A: Fn(&mut TcpStream, &Request) -> io::Result<()> + Send + Sync + 'static,
    {
        let (answer, clients) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        Builder::new().name(name.to_owned()).spawn(move || {
            // Whoever cannot be without rights answers nobody. The threads below are started without any.
            if privileges::give_up(None, Kept::Nothing).is_err() {
                return;
            }
            begin();
            for stream in self.0.incoming() {
                match stream {
                    Ok(stream) => serve(stream, &answer, &clients),
                    // There is no descriptor left, perhaps.
                    Err(_) => clock::sleep(Duration::from_millis(100)),
                }
            }
        })?;
        Ok(())
    }
}

/// Answers on a thread of its own, if there are not too many.
fn serve<A>(mut stream: TcpStream, answer: &Arc<A>, clients: &Arc<AtomicUsize>)
where
    A: Fn(&mut TcpStream, &Request) -> io::Result<()> + Send + Sync + 'static,
{
    let Some(place) = Place::take(clients, MOST_CLIENTS) else {
        // An empty buffer takes it at once.
        let full =
            respond(&mut stream, "503 Service Unavailable", &[("Content-Type", PLAIN)], "too many clients\n");
        return drop(full);
    };
    let answer = Arc::clone(answer);
    // Who goes away before the end misses it.
    drop(Builder::new().name("http".to_owned()).spawn(move || -> io::Result<()> {
        let patience = Some(time::Duration::from_nanos(PATIENCE.as_nanos()));
        stream.set_read_timeout(patience)?;
        stream.set_write_timeout(patience)?;
        SockRef::from(&stream).set_tcp_user_timeout(Some(time::Duration::from_nanos(VANISHED.as_nanos())))?;
        let _place = place;
        match read(&mut stream)? {
            Some(request) => answer(&mut stream, &request),
            None => respond(&mut stream, "400 Bad Request", &[("Content-Type", PLAIN)], "allowed is GET\n"),
        }
    }));
}

/// One of the places for clients.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    /// One more, if fewer than `most` are taken.
    pub(crate) fn take(clients: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let room = |taken: usize| (taken < most).then_some(taken + 1);
        clients.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(Self(Arc::clone(clients)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends an answer that is the last on its connection.
pub(crate) fn respond(
    stream: &mut TcpStream,
    status: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// A request; `None` if it is none that is allowed.
fn read(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    let began = clock::monotonic();
    while head.len() < MOST_HEAD && clock::monotonic().saturating_since(began) < PATIENCE {
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            break;
        }
        head.extend_from_slice(&buffer[..len]);
        match Request::parse(&head) {
            Some(None) => {}
            Some(request) => return Ok(request),
            None => break,
        }
    }
    Ok(None)
}

impl Request {
    /// Reads a head; `Some(None)` of one that goes on.
    #[expect(clippy::option_option, reason = "whether it is one, and whether it is whole")]
    fn parse(head: &[u8]) -> Option<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head).ok()? {
            httparse::Status::Partial => return Some(None),
            httparse::Status::Complete(_) if request.method == Some("GET") => {}
            httparse::Status::Complete(_) => return None,
        }
        let (path, query) = request.path?.split_once('?').unwrap_or((request.path?, ""));
        let header = |name: &str| {
            let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            String::from_utf8_lossy(found.map(|header| header.value).unwrap_or_default()).into_owned()
        };
        let [host, cookies, last_event] = ["host", "cookie", "last-event-id"].map(header);
        Some(Some(Self { path: path.to_owned(), query: query.to_owned(), host, cookies, last_event }))
    }
}

/// What the gateway of this device says of itself, if it answers.
pub(crate) fn ask(device: &str) -> Option<Status> {
    let mut running = query::running().ok()?;
    running.retain(|place| place.device() == device);
    query::ask(&running).into_iter().find_map(|asked| asked.status.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_whole_or_not_at_all() {
        let whole = b"GET /metrics?a=b HTTP/1.1\r\nhOST: localhost:9469\r\nCookie: token=x\r\nLast-Event-ID: 7\r\n\r\n";
        let request = Request {
            path: "/metrics".to_owned(),
            query: "a=b".to_owned(),
            host: "localhost:9469".to_owned(),
            cookies: "token=x".to_owned(),
            last_event: "7".to_owned(),
        };
        assert_eq!(Request::parse(whole), Some(Some(request)));
        for len in 1..whole.len() {
            assert_eq!(Request::parse(&whole[..len]), Some(None), "{len} bytes");
        }
        for wrong in ["POST / HTTP/1.1\r\n\r\n", "\0\0", "GET / HTTP/9\r\n\r\n"] {
            assert_eq!(Request::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn there_are_so_many_places_and_they_come_back() {
        let clients = Arc::new(AtomicUsize::new(0));
        let mut places: Vec<_> =
            (0..MOST_CLIENTS).filter_map(|_| Place::take(&clients, MOST_CLIENTS)).collect();
        assert_eq!(places.len(), MOST_CLIENTS);
        assert!(Place::take(&clients, MOST_CLIENTS).is_none());
        places.pop();
        assert!(Place::take(&clients, MOST_CLIENTS).is_some());
    }
}
