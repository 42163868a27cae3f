//! The page of a gateway, in a browser that sees it live; and whom it is shown to.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use base::Duration;
use gateway::clock::sleep;

use super::bench::{missing, told, wait_until};
use super::road::{FULL, Road, TUNNELLED};
use crate::requirements::skipped;
use crate::scratch::Scratch;
use crate::sight::{Live, Scheme, browser, faults, look_with};

const TOKEN: &str = "a-token-of-the-test";

/// A host with a page on its loopback address, and a hub.
fn shown() -> Road {
    let mut road = Road::new();
    road.start_hub();
    let text = road.host_file(FULL, "", "10.2.0.2:51900") + "[page]\nlisten = \"127.0.0.1:9470\"\n";
    road.start(0, &text);
    road.wait_for_session();
    road
}

/// Serves at the host, from one place: the page around, a picture that comes after some seconds, and what the gateway shows.
fn serve_around(road: &Road, scratch: &Scratch) {
    let around = scratch.path("around.html");
    let serve = move || {
        let listener = TcpListener::bind("127.0.0.1:9480").unwrap();
        for stream in listener.incoming().flatten() {
            let around = around.clone();
            // In this namespace, as the thread that starts it.
            std::thread::spawn(move || answer(stream, &around));
        }
    };
    drop(road.namespaces[0].enter(serve).unwrap());
}

fn answer(mut stream: TcpStream, around: &str) -> io::Result<()> {
    let mut head = vec![0; 4096];
    let len = stream.read(&mut head)?;
    let head = String::from_utf8_lossy(&head[..len]).into_owned();
    let ok = |kind: &str, body: &str| format!("HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\n\r\n{body}");
    if head.starts_with("GET /around ") {
        return stream.write_all(ok("text/html", &fs::read_to_string(around)?).as_bytes());
    }
    if head.starts_with("GET /later ") {
        sleep(Duration::from_secs(6));
        let picture = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>";
        return stream.write_all(ok("image/svg+xml", picture).as_bytes());
    }
    let mut gateway = TcpStream::connect("127.0.0.1:9470")?;
    gateway.write_all(head.as_bytes())?;
    io::copy(&mut gateway, &mut stream).map(drop)
}

#[test]
fn the_page_shows_a_phone_and_a_desk_how_the_gateway_is_doing() {
    if missing("the page") || skipped("the page in a browser", browser().err()) {
        return;
    }
    let mut road = shown();
    let scratch = Scratch::new("page");
    serve_around(&road, &scratch);
    let look = |road: &Road, scheme: Scheme| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", road.namespaces[0].name()]).arg(browser().unwrap());
        let at = "http://127.0.0.1:9480";
        let live = Live { around: &format!("{at}/around"), until: &format!("{at}/later") };
        look_with(command, &scratch, &[format!("{at}/")], Some(&live), scheme)
    };
    for scheme in [Scheme::Light, Scheme::Dark] {
        assert_eq!(road.seen(), TUNNELLED);
        let seen = look(&road, scheme);
        let faults = faults(&seen, scheme);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        for frame in &seen.frames {
            let words = frame["words"].as_str().unwrap();
            for part in [
                "sat0",
                "1 of 1 peers connected",
                "hub (10.2.0.2:51900)",
                "connected, ",
                "Traffic",
                "bit/s",
                "10 min ago",
            ] {
                assert!(words.contains(part), "no {part:?} in {words:?}");
            }
            assert!(frame["curves"].as_u64().unwrap() >= 4, "{frame}");
        }
    }
    road.end(1, "TERM");
    wait_until("the peer is known to be gone", 10, || {
        told(&road.namespaces[0]).is_some_and(|status| status["peers"][0]["state"] == "silent")
    });
    let seen = look(&road, Scheme::Light);
    for frame in &seen.frames {
        let words = frame["words"].as_str().unwrap();
        assert!(words.contains("0 of 1 peers connected") && words.contains("silent, "), "{words:?}");
    }
}

#[test]
fn the_page_is_shown_to_whom_it_is_meant_for() {
    if missing("the_page_is_shown_to_whom_it_is_meant_for") {
        return;
    }
    let mut road = Road::new();
    let open = road.host_file("", "", "10.2.0.2:51900") + "[page]\nlisten = \"0.0.0.0:9470\"\n";
    road.start(0, &open);
    assert_eq!(road.gateways[0].take().unwrap().wait().unwrap().code(), Some(2));
    assert!(road.log(0).contains("[page] needs a token"), "{}", road.log(0));
    road.start(0, &format!("{open}token = \"{TOKEN}\"\n"));
    wait_until("it runs", 20, || told(&road.namespaces[0]).is_some());
    let code = |arguments: &[&str]| {
        let all = [&["curl", "-s", "-o", "/dev/null", "-m", "5", "-w", "%{http_code}"], arguments].concat();
        road.says(&all)
    };
    let at = "http://127.0.0.1:9470";
    assert_eq!(code(&[&format!("{at}/")]), "401");
    assert_eq!(code(&[&format!("{at}/moments")]), "401");
    assert_eq!(code(&[&format!("{at}/?token={TOKEN}x")]), "401");
    assert_eq!(code(&["-H", "Host: evil.example", &format!("{at}/?token={TOKEN}")]), "403");
    assert_eq!(code(&[&format!("{at}/?token={TOKEN}")]), "303");
    let cookies = road.directory.join("cookies").display().to_string();
    assert_eq!(code(&["-L", "-c", &cookies, &format!("{at}/?token={TOKEN}")]), "200");
    assert_eq!(code(&["-X", "POST", "-b", &cookies, &format!("{at}/")]), "400");
    assert_eq!(code(&["-b", &cookies, &format!("{at}/etc/passwd")]), "404");
    // Who comes back gets what it has not had.
    let stream = |after: &str| {
        let header = format!("Last-Event-ID: {after}");
        road.says(&["curl", "-s", "-N", "-m", "3", "-b", &cookies, "-H", &header, &format!("{at}/moments")])
    };
    let all = stream("0");
    let moments = |text: &str| text.matches("\"uptime\":").count();
    assert!(all.contains("event: moments\ndata: [{") && moments(&all) >= 3, "{all}");
    let last = all.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let rest = stream(last);
    assert!((1..=4).contains(&moments(&rest)) && !rest.contains(&format!("\"at\":{last},")), "{rest}");
    assert!(moments(&stream("NaN")) >= 3, "what is no time is none");
    // Twenty who stay leave no room, and leave it again when they go.
    let mut watchers: Vec<_> = (0..20)
        .map(|_| {
            let mut command = Command::new("ip");
            command.args([
                "netns",
                "exec",
                road.namespaces[0].name(),
                "curl",
                "-s",
                "-N",
                "-o",
                "/dev/null",
                "-m",
                "60",
                "-b",
                &cookies,
            ]);
            command.arg(format!("{at}/moments")).spawn().unwrap()
        })
        .collect();
    let streams = || code(&["-m", "1", "-b", &cookies, &format!("{at}/moments")]);
    wait_until("it is full", 10, || streams() == "503");
    assert_eq!(code(&["-b", &cookies, &format!("{at}/")]), "200", "others are answered all the same");
    for watcher in &mut watchers {
        let _ = watcher.kill();
        let _ = watcher.wait();
    }
    wait_until("there is room again", 20, || streams() == "200");
    road.end(0, "TERM");
}
