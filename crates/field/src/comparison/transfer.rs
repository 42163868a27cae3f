//! One transfer, by the kernel's TCP or by ours.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time;

use base::{Duration, Instant};
use socket2::{Domain, Socket, Type};
use tcp::TcpConfig;

use super::configuration::Configuration;
use super::site::{FORWARDING, KERNEL, MTU, OURS, PORT, Site};
use crate::stack::exchange::Plan;
use crate::stack::{self, Application, Exchange, Stack};
use crate::tcp_info::TcpInfo;
use gateway::clock::{Clock, sleep};

/// What a transfer took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) span: Duration,
    pub(super) retransmissions: u64,
}

/// Longer than any transfer that gets anywhere takes.
const PATIENCE: Duration = Duration::from_secs(1800);
/// How often to look whether everything is to stop.
const LOOK: Duration = Duration::from_millis(200);
/// For the receiver to listen before the sender connects.
const HEAD_START: Duration = Duration::from_millis(50);

/// By the kernel's TCP.
pub(super) fn kernel(
    site: &Site,
    configuration: &Configuration,
    content: &Arc<[u8]>,
    stop: &AtomicBool,
) -> io::Result<Outcome> {
    let clock = Clock::start();
    let (controller, to) = (configuration.controller.name(), SocketAddr::new(address(KERNEL[1]), PORT));
    let (expected, content) = (Arc::clone(content), Arc::clone(content));
    carry_out(
        site,
        stop,
        move |finished| receive(to, controller, &expected, clock, finished),
        move |finished| send(to, controller, &content, clock, finished),
    )
}

/// Both sides, each in its namespace and told when to end.
fn carry_out(
    site: &Site,
    stop: &AtomicBool,
    receive: impl FnOnce(&AtomicBool) -> io::Result<Instant> + Send + 'static,
    send: impl FnOnce(&AtomicBool) -> io::Result<(Instant, u64)> + Send + 'static,
) -> io::Result<Outcome> {
    let [a, b] = &site.namespaces;
    let finished = Arc::new(AtomicBool::new(false));
    let receiver = {
        let finished = Arc::clone(&finished);
        b.enter(move || {
            let result = receive(&finished);
            finished.store(true, Ordering::Release);
            result
        })?
    };
    sleep(HEAD_START);
    let sender = {
        let finished = Arc::clone(&finished);
        a.enter(move || send(&finished))?
    };
    conclude(sender, receiver, &finished, stop)
}

type Side<T> = JoinHandle<io::Result<io::Result<T>>>;

/// Waits for both sides, or has them end early.
fn conclude(
    sender: Side<(Instant, u64)>,
    receiver: Side<Instant>,
    finished: &AtomicBool,
    stop: &AtomicBool,
) -> io::Result<Outcome> {
    while !sender.is_finished() {
        if stop.load(Ordering::Relaxed) {
            finished.store(true, Ordering::Release);
        }
        sleep(LOOK);
    }
    // A sender that failed leaves a receiver that waits.
    finished.store(true, Ordering::Release);
    let (started, retransmissions) = sender.join().map_err(|_| panicked())???;
    let ended = receiver.join().map_err(|_| panicked())???;
    Ok(Outcome { span: ended.saturating_since(started), retransmissions })
}

/// When it had the last byte.
fn receive(
    at: SocketAddr,
    controller: &str,
    expected: &[u8],
    clock: Clock,
    stop: &AtomicBool,
) -> io::Result<Instant> {
    let socket = socket(at, controller)?;
    socket.bind(&at.into())?;
    socket.listen(1)?;
    socket.set_nonblocking(true)?;
    let socket = loop {
        match socket.accept() {
            Ok((socket, _)) => break socket,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if stop.load(Ordering::Acquire) => return Err(io::ErrorKind::Interrupted.into()),
            Err(_) => sleep(Duration::from_millis(1)),
        }
    };
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(time::Duration::from_millis(LOOK.as_millis())))?;
    let mut stream = TcpStream::from(socket);
    let (mut chunk, mut received) = (vec![0; 256 * 1024], 0);
    while received < expected.len() {
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => {
                if expected.get(received..received + len) != Some(&chunk[..len]) {
                    return Err(changed(received));
                }
                received += len;
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if stop.load(Ordering::Acquire) => return Err(io::ErrorKind::Interrupted.into()),
            Err(_) => {}
        }
    }
    Ok(clock.now())
}

/// When it began, and how many segments it sent again until the receiver had `finished`.
fn send(
    to: SocketAddr,
    controller: &str,
    content: &[u8],
    clock: Clock,
    finished: &AtomicBool,
) -> io::Result<(Instant, u64)> {
    let socket = socket(to, controller)?;
    let started = clock.now();
    socket.connect(&to.into())?;
    socket.set_write_timeout(Some(time::Duration::from_millis(LOOK.as_millis())))?;
    let mut stream = TcpStream::from(socket);
    let mut written = 0;
    while !finished.load(Ordering::Acquire) {
        if written == content.len() {
            sleep(LOOK);
            continue;
        }
        match stream.write(&content[written..]) {
            Ok(len) => {
                written += len;
                if written == content.len() {
                    // Nothing holds the last segment back.
                    stream.shutdown(Shutdown::Write)?;
                }
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) => {}
        }
    }
    Ok((started, TcpInfo::of(&stream)?.total_retransmissions()))
}

pub(crate) fn socket(remote: SocketAddr, controller: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(remote), Type::STREAM, None)?;
    socket.set_tcp_congestion(controller.as_bytes())?;
    Ok(socket)
}

/// By our TCP, in a stack on either side.
pub(super) fn ours(
    site: &Site,
    config: TcpConfig,
    content: &Arc<[u8]>,
    stop: &AtomicBool,
) -> io::Result<Outcome> {
    let clock = Clock::start();
    let config = Arc::new(config);
    let theirs = Arc::clone(&config);
    let (expected, content) = (Arc::clone(content), Arc::clone(content));
    carry_out(
        site,
        stop,
        move |finished| receive_ours(&theirs, &expected, clock, finished),
        move |finished| send_ours(&config, content, clock, finished),
    )
}

fn receive_ours(
    config: &TcpConfig,
    expected: &[u8],
    clock: Clock,
    finished: &AtomicBool,
) -> io::Result<Instant> {
    let mut stack = open(1, clock)?;
    let plan = plan(Arc::default(), expected.len());
    let exchange = Exchange::listen(plan, stack.hosts_mut(), address(OURS[1]), PORT, config);
    let mut exchange = exchange.map_err(io::Error::other)?;
    run(&mut stack, &mut exchange, finished, |exchange| exchange.received().len() >= expected.len())?;
    match exchange.received_at() {
        Some(at) if *exchange.received() == *expected => Ok(at),
        _ if finished.load(Ordering::Acquire) => Err(io::ErrorKind::Interrupted.into()),
        _ => Err(changed(exchange.received().len())),
    }
}

fn send_ours(
    config: &TcpConfig,
    content: Arc<[u8]>,
    clock: Clock,
    finished: &AtomicBool,
) -> io::Result<(Instant, u64)> {
    let mut stack = open(0, clock)?;
    let (started, to) = (stack.now(), SocketAddr::new(address(OURS[1]), PORT));
    let hosts = stack.hosts_mut();
    let exchange = Exchange::connect(plan(content, 0), hosts, address(OURS[0]), started, to, config);
    let mut exchange = exchange.map_err(io::Error::other)?;
    run(&mut stack, &mut exchange, finished, |_| false)?;
    let connections = stack.hosts().get(address(OURS[0])).into_iter().flat_map(tcp::Host::connections);
    let retransmissions =
        connections.map(|(_, connection)| connection.sender_statistics().retransmissions).sum();
    Ok((started, retransmissions))
}

fn open(side: usize, clock: Clock) -> io::Result<Stack> {
    let options = stack::Options {
        device: "tcp0".to_owned(),
        mtu: MTU,
        hosts: vec![address(OURS[side])],
        kernel: vec![FORWARDING[side].parse().map_err(io::Error::other)?],
        seed: 1,
        impairments: None,
    };
    Stack::open(&options, clock)
}

fn plan(outgoing: Arc<[u8]>, limit: usize) -> Plan {
    // A receiver does not close: the kernel's ends with the last byte too.
    Plan { finishes: !outgoing.is_empty(), outgoing, limit, abort_after: None, pace: None }
}

/// Until the exchange is `done` or has ended, or somebody has `finished`.
fn run(
    stack: &mut Stack,
    exchange: &mut Exchange,
    finished: &AtomicBool,
    done: impl Fn(&Exchange) -> bool,
) -> io::Result<()> {
    let until = stack.now() + PATIENCE;
    while !done(exchange) && !exchange.is_finished() && !finished.load(Ordering::Acquire) {
        let now = stack.now();
        if until <= now {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stack.run(exchange, now + LOOK)?;
    }
    Ok(())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| unreachable!("{text} is an address"))
}

pub(crate) fn changed(at: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the content changed before byte {at}"))
}

pub(crate) fn panicked() -> io::Error {
    io::Error::other("a thread panicked")
}
