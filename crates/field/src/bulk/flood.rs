//! A stranger who floods the hub's gateway with junk that looks like initiations.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::Duration;

use crate::comparison::transfer::panicked;
use crate::testbed::namespaces::Namespace;
use gateway::clock::{Clock, sleep};

/// A flood that is under way; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<io::Result<f64>>>>,
}

/// Bytes of an initiation, and what its first says (the table in `tunnel::session::wire`).
const INITIATION_LEN: usize = 208;
const INITIATION: u8 = 1;
/// Datagrams sent before the clock is read again.
const BURST: u32 = 16;
/// Where there is nothing to send yet.
const PAUSE: Duration = Duration::from_micros(200);

impl Flood {
    /// Sends so many datagrams a second to `target`, from `namespace`.
    pub(super) fn start(namespace: &Namespace, target: String, per_second: u32) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = Some(namespace.enter(move || flood(&target, per_second, &told))?);
        Ok(Self { stop, thread })
    }

    /// Ends it; how many datagrams left in a second.
    pub(super) fn end(mut self) -> io::Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or_else(panicked)?;
        thread.join().map_err(|_| panicked())??
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Whoever drops it has another error to tell.
            let _ = thread.join();
        }
    }
}

fn flood(target: &str, per_second: u32, stop: &AtomicBool) -> io::Result<f64> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(target)?;
    let mut junk = [0_u8; INITIATION_LEN];
    // All of one length and a first byte that passes; no two alike, as no replay filter should help.
    junk[0] = INITIATION;
    let (clock, mut tried, mut sent) = (Clock::start(), 0_u64, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        if tried as f64 > clock.now().as_secs_f64() * f64::from(per_second) {
            sleep(PAUSE);
            continue;
        }
        for _ in 0..BURST {
            tried += 1;
            junk[4..12].copy_from_slice(&tried.to_le_bytes());
            // A full queue is what a flood makes; the rate that was reached tells of it.
            sent += u64::from(socket.send(&junk).is_ok());
        }
    }
    Ok(sent as f64 / clock.now().as_secs_f64())
}
