//! A download by the kernel's TCP between two namespaces, for as long as somebody wants it: what has come is counted.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time;

use base::{Duration, Instant};
use socket2::{Domain, Protocol, Socket, Type};

use crate::comparison::configuration::Controller;
use crate::comparison::transfer::panicked;
use crate::testbed::namespaces::Namespace;
use gateway::clock::{Clock, sleep};

/// The kernel's TCP, as sockets ask for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    /// The namespace's, without one.
    pub(crate) controller: Option<Controller>,
    /// Multipath TCP (RFC 8684), where both ends have it and the namespaces say over which addresses.
    pub(crate) is_multipath: bool,
}

/// A download that is under way.
pub(crate) struct Download {
    clock: Clock,
    over: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    sides: [JoinHandle<io::Result<io::Result<()>>>; 2],
}

/// How often to look whether it is over.
const LOOK: time::Duration = time::Duration::from_millis(50);
const CHUNK: usize = 256 * 1024;

impl Kernel {
    pub(crate) fn socket(self, remote: SocketAddr) -> io::Result<Socket> {
        let protocol = self.is_multipath.then_some(Protocol::MPTCP);
        let socket = Socket::new(Domain::for_address(remote), Type::STREAM, protocol)?;
        if let Some(controller) = self.controller {
            socket.set_tcp_congestion(controller.name().as_bytes())?;
        }
        Ok(socket)
    }

    /// At this port of all addresses: over other paths Multipath TCP joins at others.
    pub(crate) fn listen(self, port: u16, backlog: i32) -> io::Result<Socket> {
        let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let listener = self.socket(at)?;
        listener.set_reuse_address(true)?;
        listener.bind(&at.into())?;
        listener.listen(backlog)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    pub(crate) fn connect(self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = self.socket(to)?;
        socket.connect(&to.into())?;
        Ok(TcpStream::from(socket))
    }
}

/// The next connection, unless it is `over` before one comes.
pub(crate) fn accept(listener: &Socket, over: &AtomicBool) -> io::Result<Option<TcpStream>> {
    while !over.load(Ordering::Acquire) {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false)?;
                return Ok(Some(TcpStream::from(socket)));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(Duration::from_micros(500)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

impl Download {
    /// From one namespace to the receiver's, which is `at` this address: the first SYN leaves now.
    pub(crate) fn start(
        [sender, receiver]: [&Namespace; 2],
        at: SocketAddr,
        kernel: Kernel,
    ) -> io::Result<Self> {
        let (over, received) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let listener =
            receiver.enter(move || kernel.listen(at.port(), 1))?.join().map_err(|_| panicked())???;
        let (told, count) = (Arc::clone(&over), Arc::clone(&received));
        let receiver = receiver.enter(move || receive(&listener, &count, &told))?;
        let (told, clock) = (Arc::clone(&over), Clock::start());
        let sender = sender.enter(move || send(kernel.connect(at)?, &told))?;
        Ok(Self { clock, over, received, sides: [receiver, sender] })
    }

    /// Waits until so long after the first SYN, or until a side has ended, which [`Download::finish`] tells why.
    pub(crate) fn wait_until(&self, span: Duration) {
        while self.clock.now() < Instant::ZERO + span && !self.sides.iter().any(JoinHandle::is_finished) {
            sleep(Duration::from_millis(1));
        }
    }

    /// Bytes that have come.
    pub(crate) fn bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Ends it.
    ///
    /// # Errors
    /// What went wrong on either side.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.over.store(true, Ordering::Release);
        self.sides.into_iter().try_for_each(|side| side.join().map_err(|_| panicked())??)
    }
}

fn receive(listener: &Socket, count: &AtomicU64, over: &AtomicBool) -> io::Result<()> {
    let mut stream = accept(listener, over)?.ok_or(io::ErrorKind::TimedOut)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut chunk = vec![0; CHUNK];
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => _ = count.fetch_add(len as u64, Ordering::Relaxed),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn send(mut stream: TcpStream, over: &AtomicBool) -> io::Result<()> {
    stream.set_write_timeout(Some(LOOK))?;
    let chunk = vec![0x55; CHUNK];
    while !over.load(Ordering::Relaxed) {
        match stream.write(&chunk) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The receiver was the first to hear that it is over.
            Err(_) if over.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Ok(())
}
