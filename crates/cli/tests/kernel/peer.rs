//! The kernel's side of a case: a socket.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::time;

use base::{Duration, Instant};
use gateway::clock::{Clock, sleep};
use gateway::readiness::{Interest, wait};
use socket2::{Domain, SockRef, Socket, Type};

use super::case::{Case, Cut};
use super::place::listener;
use crate::{Ended, Seen};

/// A socket that listens already, or will connect.
pub(crate) struct Peer {
    socket: Socket,
}

/// How often to look whether somebody has connected.
const LOOK: Duration = Duration::from_millis(2);

impl Peer {
    pub(crate) fn new(case: &Case) -> io::Result<Self> {
        let at = listener(case);
        let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
        // By socket: a namespace may choose only what the machine allows to everybody.
        socket.set_tcp_congestion(case.kernel.congestion.as_bytes())?;
        if let Some(size) = case.kernel.receive_buffer {
            socket.set_recv_buffer_size(size)?;
        }
        if let Some(size) = case.kernel.send_buffer {
            socket.set_send_buffer_size(size)?;
        }
        if case.we_connect {
            socket.bind(&at.into())?;
            socket.listen(1)?;
            socket.set_nonblocking(true)?;
        }
        Ok(Self { socket })
    }

    /// Exchanges what the case says, and says what it saw.
    pub(crate) fn run(self, case: &Case, patience: Duration) -> Seen {
        let clock = Clock::start();
        let until = Instant::ZERO + patience;
        let mut received = Vec::new();
        let end = self
            .open(case, &clock, until)
            .and_then(|mut stream| exchange(&mut stream, case, &mut received, &clock, until))
            .unwrap_or_else(|error| match error.kind() {
                ErrorKind::ConnectionReset => Ended::Reset,
                _ => Ended::Otherwise(error.to_string()),
            });
        Seen { received, end }
    }

    fn open(self, case: &Case, clock: &Clock, until: Instant) -> io::Result<TcpStream> {
        if !case.we_connect {
            self.socket.connect_timeout(&listener(case).into(), time::Duration::from_secs(60))?;
            self.socket.set_nonblocking(true)?;
            return Ok(self.socket.into());
        }
        while clock.now() < until {
            match self.socket.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(true)?;
                    return Ok(socket.into());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(LOOK),
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::TimedOut, "nobody connected"))
    }
}

fn exchange(
    stream: &mut TcpStream,
    case: &Case,
    received: &mut Vec<u8>,
    clock: &Clock,
    until: Instant,
) -> io::Result<Ended> {
    let cut = if let Some(Cut::ByKernel(after)) = case.cut { Some(after) } else { None };
    let (mut written, mut finished, mut read_at) = (0, false, Instant::ZERO);
    let (mut chunk, mut peer_finished) = (vec![0; 64 * 1024], false);
    while !(finished && peer_finished) {
        let now = clock.now();
        if until <= now {
            return Err(io::Error::new(ErrorKind::TimedOut, "still open"));
        }
        let reads = !peer_finished && read_at <= now;
        let timeout = if read_at > now { read_at.saturating_since(now) } else { Duration::from_millis(100) };
        let interest = Interest::either(stream.as_fd(), reads, !finished);
        let [ready] = wait([interest], Some(timeout))?;
        if reads && ready.read {
            let most = case.kernel.pace.map_or(chunk.len(), |(most, _)| most.min(chunk.len()));
            match ready_or(stream.read(&mut chunk[..most]))? {
                Some(0) => peer_finished = true,
                Some(len) => received.extend_from_slice(&chunk[..len]),
                None => {}
            }
            read_at = case.kernel.pace.map_or(now, |(_, every)| now + every);
        }
        if !finished && ready.write {
            written += ready_or(stream.write(&case.from_kernel[written..]))?.unwrap_or(0);
            if written == case.from_kernel.len() {
                stream.shutdown(Shutdown::Write)?;
                finished = true;
            }
        }
        if cut.is_some_and(|after| received.len() >= after) {
            // Closed with this option, the socket sends a reset.
            SockRef::from(&*stream).set_linger(Some(time::Duration::ZERO))?;
            return Ok(Ended::Aborted);
        }
    }
    Ok(Ended::InOrder)
}

fn ready_or(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(len) => Ok(Some(len)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
