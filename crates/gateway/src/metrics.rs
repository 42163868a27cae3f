//! `[metrics]`: a gateway's numbers for Prometheus, over HTTP.
//!
//! A thread of its own answers. It asks the gateway for its status as `longhaul gateway status` does, so that scrapes take no more of the
//! packets' time than that, and has no rights at all.

mod page;
mod table;

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::Builder;
use std::time;

use base::Duration;

use crate::clock;
use crate::daemon::{Status, query};
use crate::privileges::{self, Kept};

pub use page::page;

/// Where scrapes come, opened while there is a right to low ports.
#[derive(Debug)]
pub(crate) struct Scrapes {
    listener: TcpListener,
    device: String,
}

/// For a request to come, and for an answer to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request's head, at most.
const MOST_HEAD: usize = 8192;
/// Headers of a request, at most.
const MOST_HEADERS: usize = 64;

impl Scrapes {
    /// Listens at `at`, for the gateway of this device.
    ///
    /// # Errors
    /// An address that is not ours or is taken.
    pub(crate) fn listen(at: SocketAddr, device: &str) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(at)?, device: device.to_owned() })
    }

    /// Answers from now on, until the process ends.
    ///
    /// # Errors
    /// There is no room for a thread.
    pub(crate) fn start(self) -> io::Result<()> {
        Builder::new().name("metrics".to_owned()).spawn(move || {
            // Whoever cannot be without rights answers nobody.
            if privileges::give_up(None, Kept::Nothing).is_ok() {
                self.serve();
            }
        })?;
        Ok(())
    }

    fn serve(&self) {
        for stream in self.listener.incoming() {
            match stream {
                // Who goes away before the end misses it.
                Ok(stream) => drop(self.answer(stream)),
                // There is no descriptor left, perhaps.
                Err(_) => clock::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let patience = time::Duration::from_nanos(PATIENCE.as_nanos());
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let (status, kind, body) = match path(&mut stream)?.as_deref() {
            Some("/metrics") => match self.ask() {
                Some(status) => ("200 OK", OPEN_METRICS, page(&status, clock::seconds_of_day())),
                None => ("503 Service Unavailable", PLAIN, "the gateway does not answer\n".to_owned()),
            },
            Some(_) => ("404 Not Found", PLAIN, "there is /metrics\n".to_owned()),
            None => ("400 Bad Request", PLAIN, "allowed is GET /metrics\n".to_owned()),
        };
        let len = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    }

    fn ask(&self) -> Option<Status> {
        let mut running = query::running().ok()?;
        running.retain(|place| place.device() == self.device);
        query::ask(&running).into_iter().find_map(|asked| asked.status.ok())
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The path that is asked for; `None` if it is no such question.
fn path(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    let began = clock::monotonic();
    while head.len() < MOST_HEAD && clock::monotonic().saturating_since(began) < PATIENCE {
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            break;
        }
        head.extend_from_slice(&buffer[..len]);
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Partial) => {}
            Ok(httparse::Status::Complete(_)) if request.method == Some("GET") => {
                let path = request.path.and_then(|path| path.split('?').next());
                return Ok(path.map(str::to_owned));
            }
            _ => break,
        }
    }
    Ok(None)
}
