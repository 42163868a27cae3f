//! One TCP stream between two namespaces, as fast as it goes.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time;

use base::{Duration, Instant};

use super::broken;
use crate::testbed::namespaces::Namespace;
use gateway::clock::{Clock, sleep};
use gateway::signals::Signals;

const PORT: u16 = 5201;
/// Bytes of one write or read: several super-segments.
const CHUNK: usize = 256 * 1024;
/// A stream that stands still for so long is broken.
const STALL: time::Duration = time::Duration::from_secs(10);

/// Payload that arrives per second, in Gbit/s, over `duration` after `warm_up`; an error of the kind
/// `Interrupted` when one of the `signals` asks to end.
pub(super) fn throughput(
    namespaces: &[Namespace; 2],
    address: &str,
    [warm_up, duration]: [Duration; 2],
    signals: &mut Signals,
) -> io::Result<f64> {
    let to = SocketAddr::new(address.parse().map_err(|_| broken("the address is a constant"))?, PORT);
    let received = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let (counted, ready) = (Arc::clone(&received), Arc::new(AtomicBool::new(false)));
    let listening = Arc::clone(&ready);
    let receiver = namespaces[1].enter(move || receive(to, &counted, &listening))?;
    while !ready.load(Ordering::Acquire) && !receiver.is_finished() {
        sleep(Duration::from_millis(1));
    }
    let stopped = Arc::clone(&stop);
    let sender = namespaces[0].enter(move || send(to, &stopped))?;

    let clock = Clock::start();
    let mut interrupted = false;
    let mut wait_until = |when: Duration| {
        while clock.now() < Instant::ZERO + when && !sender.is_finished() && !receiver.is_finished() {
            interrupted |= signals.received();
            if interrupted {
                break;
            }
            sleep(Duration::from_millis(1));
        }
    };
    wait_until(warm_up);
    let (from, bytes_before) = (clock.now(), received.load(Ordering::Relaxed));
    wait_until(warm_up + duration);
    let (until, bytes_after) = (clock.now(), received.load(Ordering::Relaxed));
    stop.store(true, Ordering::Relaxed);
    sender.join().map_err(|_| broken("the sender panicked"))???;
    receiver.join().map_err(|_| broken("the receiver panicked"))???;
    if interrupted {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let seconds = until.saturating_since(from).as_secs_f64();
    Ok((bytes_after - bytes_before) as f64 * 8.0 / seconds / 1e9)
}

fn receive(at: SocketAddr, received: &AtomicU64, listening: &AtomicBool) -> io::Result<()> {
    let listener = TcpListener::bind(at)?;
    listening.store(true, Ordering::Release);
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(STALL))?;
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            len => received.fetch_add(len as u64, Ordering::Relaxed),
        };
    }
}

fn send(to: SocketAddr, stop: &AtomicBool) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, STALL)?;
    stream.set_write_timeout(Some(STALL))?;
    let buffer = vec![0x5a; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&buffer)?;
    }
    stream.shutdown(Shutdown::Write)
}
