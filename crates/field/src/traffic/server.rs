//! The server: a thread for each connection, and no more of them than allowed.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time;

use base::Duration;
use serde::Serialize;

use super::offset::{self, Offset};
use super::request::{Answer, Direction, Model, REQUEST_LEN, Request, RequestError};
use super::sockets::{self, InUse, Sockets, prepare};
use super::stream::{self, Broken, CONTENT};
use gateway::clock::{monotonic, sleep};
use gateway::readiness::{Interest, wait};
use gateway::signals::Signals;

/// For a request to come, once connected.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// Connections beyond the limit that are told so; others are closed without a word.
const TOLD_BUSY: usize = 16;
/// Bytes of a connection's stack: buffers live elsewhere.
const STACK: usize = 256 * 1024;
/// How long a signal may go unheard.
const TICK: Duration = Duration::from_millis(50);
/// What is left running is given so long to notice that it has been ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server of all models.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: usize,
    patience: Duration,
    sockets: Sockets,
    counters: Mutex<Counters>,
    complaints: Mutex<Complaints>,
}

/// What became of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Came in.
    pub connections: u64,
    /// Did what was asked, to the end.
    pub completed: u64,
    /// Were too many.
    pub refused_busy: u64,
    /// Asked for what is not served.
    pub refused_request: u64,
    /// Asked for a congestion control that the kernel does not let us use.
    pub refused_congestion: u64,
    /// Were closed before they asked, or asked too slowly.
    pub silent: u64,
    /// Broke, or carried damaged content.
    pub broken: u64,
}

/// Each kind of refusal is told once: anybody can cause it.
#[derive(Debug, Default)]
struct Complaints {
    told: BTreeSet<&'static str>,
    waiting: Vec<String>,
}

enum Failure {
    Busy,
    Silent,
    Request(RequestError),
    Congestion(io::Error),
    Broken(Broken),
}

impl Server {
    /// Listens at `address` for up to `limit` connections at once, on each of which something has to move
    /// within `patience`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(address: SocketAddr, limit: usize, patience: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let shared = Shared {
            limit,
            patience,
            sockets: Sockets::default(),
            counters: Mutex::default(),
            complaints: Mutex::default(),
        };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What became of the connections so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves until a signal comes; `complain` hears of what is refused or breaks, once of each kind.
    ///
    /// # Errors
    /// What the kernel says about the listening socket.
    pub fn run(&self, signals: &mut Signals, complain: impl FnMut(&str)) -> io::Result<Counters> {
        self.run_until(|| signals.received(), complain)
    }

    /// Serves until `interrupted`.
    ///
    /// # Errors
    /// What the kernel says about the listening socket.
    pub fn run_until(
        &self,
        mut interrupted: impl FnMut() -> bool,
        mut complain: impl FnMut(&str),
    ) -> io::Result<Counters> {
        while !interrupted() {
            let [connection] = wait([Interest::read(self.listener.as_fd())], Some(TICK))?;
            self.shared.poll_complaints(&mut complain);
            if connection.read {
                self.accept(&mut complain);
            }
        }
        self.shared.sockets.end_all();
        let ended = monotonic();
        while self.shared.sockets.len() > 0 && monotonic().saturating_since(ended) < FAREWELL {
            sleep(Duration::from_millis(5));
        }
        Ok(self.counters())
    }

    fn accept(&self, complain: &mut impl FnMut(&str)) {
        let (socket, peer) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                // One that is gone already, or no descriptors: those in use go on, and the next may find some.
                self.shared.complaint("accept", || format!("a connection could not be accepted: {error}"));
                self.shared.poll_complaints(complain);
                sleep(Duration::from_millis(10));
                return;
            }
        };
        self.shared.count(|counters| counters.connections += 1);
        let active = self.shared.sockets.len();
        if active >= self.shared.limit + TOLD_BUSY {
            self.shared.count(|counters| counters.refused_busy += 1);
            return;
        }
        let Some(socket) = self.shared.sockets.add(socket) else { return };
        let (shared, busy) = (Arc::clone(&self.shared), active >= self.shared.limit);
        let started =
            thread::Builder::new().stack_size(STACK).spawn(move || shared.serve(&socket, peer, busy));
        if let Err(error) = started {
            self.shared.count(|counters| counters.refused_busy += 1);
            self.shared.complaint("thread", || format!("{peer}: no thread for it: {error}"));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.sockets.end_all();
    }
}

impl Shared {
    fn count(&self, what: impl FnOnce(&mut Counters)) {
        what(&mut self.counters.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn complaint(&self, kind: &'static str, text: impl FnOnce() -> String) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.told.insert(kind) {
            complaints.waiting.push(text());
        }
    }

    fn poll_complaints(&self, complain: &mut impl FnMut(&str)) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        for text in complaints.waiting.drain(..) {
            complain(&text);
        }
    }

    fn serve(&self, socket: &InUse, peer: SocketAddr, busy: bool) {
        let result = self.converse(socket, busy);
        self.count(|counters| match &result {
            Ok(()) => counters.completed += 1,
            Err(Failure::Busy) => counters.refused_busy += 1,
            Err(Failure::Silent) => counters.silent += 1,
            Err(Failure::Request(_)) => counters.refused_request += 1,
            Err(Failure::Congestion(_)) => counters.refused_congestion += 1,
            Err(Failure::Broken(_)) => counters.broken += 1,
        });
        let _ = socket.shutdown(Shutdown::Both);
        match result {
            Ok(()) | Err(Failure::Silent) => {}
            Err(Failure::Busy) => self.complaint("busy", || {
                format!("{peer}: refused, {} connections are served already", self.limit)
            }),
            Err(Failure::Request(error)) => {
                self.complaint("request", || format!("{peer}: request refused: {error}"));
            }
            Err(Failure::Congestion(error)) => {
                self.complaint("congestion", || format!("{peer}: congestion control refused: {error}"));
            }
            Err(Failure::Broken(error)) if !self.sockets.have_ended() => {
                self.complaint("broken", || format!("{peer}: {error}"));
            }
            Err(Failure::Broken(_)) => {}
        }
    }

    fn converse(&self, socket: &TcpStream, busy: bool) -> Result<(), Failure> {
        // Some systems pass the listener's mode on.
        socket.set_nonblocking(false).map_err(|_| Failure::Silent)?;
        prepare(socket, self.patience).map_err(|_| Failure::Silent)?;
        let bytes = read_request(socket, self.patience).ok_or(Failure::Silent)?;
        let answer = |answer: Answer| {
            let mut socket = socket;
            socket.write_all(&[answer.octet()]).map_err(|error| Failure::Broken(Broken::of(error, socket, 0)))
        };
        if busy {
            answer(Answer::Busy)?;
            return Err(Failure::Busy);
        }
        let request = match Request::parse(&bytes) {
            Ok(request) => request,
            Err(error) => {
                answer(Answer::Refused)?;
                return Err(Failure::Request(error));
            }
        };
        if let Some(congestion) = request.congestion
            && let Err(error) = sockets::set_congestion(socket, congestion)
        {
            answer(Answer::NoSuchCongestion)?;
            return Err(Failure::Congestion(error));
        }
        perform(socket, &request, answer)
    }
}

/// Does what is asked.
fn perform(
    socket: &TcpStream,
    request: &Request,
    answer: impl Fn(Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (own, uncounted) = (Offset::default(), AtomicU64::new(0));
    let broken = |error| Failure::Broken(Broken::of(error, socket, uncounted.load(Ordering::Relaxed)));
    match request.model {
        Model::Bulk { direction: Direction::Down, .. } | Model::Rate { direction: Direction::Down, .. } => {
            answer(Answer::Accepted)?;
            stream::send(socket, &request.model, request.stream, &own, &uncounted).map_err(Failure::Broken)
        }
        Model::Bulk { .. } | Model::Rate { .. } => {
            let origin = monotonic();
            answer(Answer::Accepted)?;
            let seen = stream::receive(socket, request.stream, origin, &own, &uncounted);
            let report = serde_json::to_vec(&seen.map_err(Failure::Broken)?).unwrap_or_default();
            let mut socket = socket;
            socket.write_all(&(report.len() as u32).to_be_bytes()).map_err(broken)?;
            socket.write_all(&report).map_err(broken)
        }
        Model::Transaction { request: len, reply } => {
            sockets::read_content(socket, &CONTENT, request.stream, len - REQUEST_LEN as u64)
                .map_err(Failure::Broken)?;
            answer(Answer::Accepted)?;
            sockets::write_content(socket, &CONTENT, request.stream ^ 1, reply - 1).map_err(Failure::Broken)
        }
        Model::Clock => {
            answer(Answer::Accepted)?;
            offset::answer(socket).map_err(broken)
        }
    }
}

/// A request, or `None` where it does not come in time; however slowly its bytes drip.
fn read_request(mut socket: &TcpStream, patience: Duration) -> Option<[u8; REQUEST_LEN]> {
    let mut bytes = [0; REQUEST_LEN];
    let (mut have, started) = (0, monotonic());
    let allowed = REQUEST_PATIENCE.min(patience);
    while have < REQUEST_LEN {
        let left = allowed.as_nanos().saturating_sub(monotonic().saturating_since(started).as_nanos());
        if left == 0 {
            return None;
        }
        socket.set_read_timeout(Some(time::Duration::from_nanos(left))).ok()?;
        match socket.read(&mut bytes[have..]) {
            Ok(0) => return None,
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        // What does not even begin like a request need not be waited for.
        if have >= 4 && bytes[..4] != *b"LHTR" {
            return Some(bytes);
        }
    }
    socket.set_read_timeout(Some(time::Duration::from_nanos(patience.as_nanos()))).ok()?;
    Some(bytes)
}
