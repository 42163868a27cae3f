//! Transfers between sockets of the kernel that go on until a given time.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

use base::{Duration, Instant};

use crate::comparison::configuration::Controller;
use crate::comparison::transfer::{changed, panicked, socket};
use crate::tcp_info::TcpInfo;
use crate::testbed::namespaces::Namespace;
use gateway::clock::{Clock, sleep};

/// When to do what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) controller: Controller,
    /// Connections at once.
    pub(super) streams: u16,
    /// When the sender sends its SYN.
    pub(super) opens: Instant,
    /// What is received later does not count.
    pub(super) ends: Instant,
    pub(super) clock: Clock,
}

/// What came of it, all connections together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) bytes: u64,
    pub(super) retransmissions: u64,
}

/// The host at the terminal, where the receivers listen, and the port of the first.
const RECEIVER: ([u8; 4], u16) = ([10, 77, 1, 2], 7_000);
/// How often to look whether everything is to stop.
const LOOK: Duration = Duration::from_millis(200);

/// Sends `content` from the first of the `rooms` to the second, over each connection of its own.
///
/// # Errors
/// What a socket says; a byte that changed; the kind `Interrupted` when it was told to `stop`.
pub(super) fn carry_out(
    rooms: &[Namespace; 2],
    plan: &Plan,
    content: &Arc<[u8]>,
    stop: &AtomicBool,
) -> io::Result<Outcome> {
    let told = Arc::new(AtomicBool::new(false));
    let plan = *plan;
    let (mut receivers, mut senders) = (Vec::new(), Vec::new());
    for stream in 0..plan.streams {
        let at = SocketAddr::from((RECEIVER.0, RECEIVER.1 + stream));
        let (heard, whole) = (Arc::clone(&told), Arc::clone(content));
        receivers.push(rooms[1].enter(move || receive(&plan, at, &whole, &heard))?);
        let (heard, whole) = (Arc::clone(&told), Arc::clone(content));
        senders.push(rooms[0].enter(move || send(&plan, at, &whole, &heard))?);
    }
    while senders.iter().chain(&receivers).any(|end| !end.is_finished()) {
        if stop.load(Ordering::Relaxed) {
            told.store(true, Ordering::Relaxed);
        }
        sleep(LOOK);
    }
    let mut outcome = Outcome::default();
    let join = |end: std::thread::JoinHandle<io::Result<io::Result<u64>>>| {
        end.join().map_err(|_| panicked()).flatten().flatten()
    };
    for (sender, receiver) in senders.into_iter().zip(receivers) {
        match (join(sender), join(receiver)) {
            // Who ends first breaks the other's connection, and knows why.
            (Err(error), Err(other)) if is_broken(&other) => return Err(error),
            (_, Err(error)) | (Err(error), _) => return Err(error),
            (Ok(again), Ok(bytes)) => {
                outcome.retransmissions += again;
                outcome.bytes += bytes;
            }
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok(outcome)
}

/// How long to wait for a socket, at most; `None` when the transfer has ended.
fn patience(plan: &Plan, told: &AtomicBool) -> Option<time::Duration> {
    let left = plan.ends.saturating_since(plan.clock.now()).min(LOOK);
    (left > Duration::ZERO && !told.load(Ordering::Relaxed))
        .then(|| time::Duration::from_nanos(left.as_nanos()))
}

/// Bytes that arrived in time.
fn receive(plan: &Plan, at: SocketAddr, expected: &[u8], told: &AtomicBool) -> io::Result<u64> {
    let socket = socket(at, plan.controller.name())?;
    socket.bind(&at.into())?;
    socket.listen(1)?;
    socket.set_nonblocking(true)?;
    let socket = loop {
        // A transfer may end before it has begun: every SYN met a blockage.
        if patience(plan, told).is_none() {
            return Ok(0);
        }
        match socket.accept() {
            Ok((socket, _)) => break socket,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) => sleep(Duration::from_millis(1)),
        }
    };
    socket.set_nonblocking(false)?;
    let mut stream = TcpStream::from(socket);
    let (mut chunk, mut received) = (vec![0; 256 * 1024], 0);
    while let Some(patience) = patience(plan, told) {
        stream.set_read_timeout(Some(patience))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => {
                if expected.get(received..received + len) != Some(&chunk[..len]) {
                    return Err(changed(received));
                }
                received += len;
            }
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(received as u64)
}

/// Segments that were sent again.
fn send(plan: &Plan, to: SocketAddr, content: &[u8], told: &AtomicBool) -> io::Result<u64> {
    let socket = socket(to, plan.controller.name())?;
    sleep(plan.opens.saturating_since(plan.clock.now()));
    // Also the handshake's patience: writes go on waiting for it.
    socket.set_write_timeout(Some(time::Duration::from_nanos(LOOK.as_nanos())))?;
    match socket.connect(&to.into()) {
        Err(error) if !waits(&error) => return Err(error),
        _ => {}
    }
    let mut stream = TcpStream::from(socket);
    let mut written = 0;
    while patience(plan, told).is_some() {
        match stream.write(&content[written..]) {
            Ok(len) => written += len,
            Err(error) if waits(&error) => {}
            // The kernel has given up, on the handshake after two minutes: no more will arrive.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
            // The receiver has counted, and is gone.
            Err(_) if plan.clock.now() >= plan.ends => break,
            Err(error) => return Err(error),
        }
    }
    // Closed before the receiver has counted, it would end the receiver's stream too.
    while !told.load(Ordering::Relaxed) && plan.clock.now() < plan.ends + LOOK {
        sleep(LOOK);
    }
    Ok(TcpInfo::of(&stream)?.total_retransmissions())
}

/// Whether the other end has ended.
fn is_broken(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Whether nothing has happened in the time given.
fn waits(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::EINPROGRESS)
}
