//! Page loads of the kernel's TCP through pairs of gateways: many objects of different sizes over a few connections at a time.
//!
//! The server is the host at the hub, the browser that at the terminal. Each load has a testbed of its own, so that no proxy knows
//! the server yet.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{Duration, Instant};

use crate::comparison::content;
use crate::download::Kernel;
use crate::objects::{self, Server};
use crate::testbed::namespaces::Room;
use crate::testbed::{self, TestbedError};
use gateway::clock::Clock;

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Bytes of each object, in the order in which they are asked for.
    pub objects: Vec<usize>,
    /// Connections at once.
    pub parallel: usize,
    /// Whether a connection fetches one object after the other; else each has one of its own.
    pub reuse: bool,
}

impl Page {
    /// `count` objects from `least` to `most` bytes, evenly spread, small and large ones alternating.
    #[must_use]
    pub fn spread(count: usize, least: usize, most: usize, parallel: usize, reuse: bool) -> Self {
        let place = |number: usize| number * STRIDE % count;
        let size = |number| least + (most - least) * place(number) / (count - 1).max(1);
        Self { objects: (0..count).map(size).collect(), parallel, reuse }
    }
}

/// A prime: the order of the objects.
const STRIDE: usize = 17;
const SERVER: ([u8; 4], u16) = ([10, 77, 2, 2], 8_080);
/// As applications have it.
const KERNEL: Kernel = Kernel { controller: None, is_multipath: false };

/// Builds the testbed, loads the page, checks every byte, and removes the testbed; how long the load took.
///
/// # Errors
/// No right, a testbed that does not come up, a connection that breaks, or a byte that changed.
pub fn load(options: &testbed::Options, page: &Page) -> Result<Duration, TestbedError> {
    testbed::up(options, || false)?;
    let result = fetch(options, page);
    testbed::down(&options.name)?;
    Ok(result?)
}

fn fetch(options: &testbed::Options, page: &Page) -> io::Result<Duration> {
    let content = content(page.objects.iter().copied().max().unwrap_or(0));
    let server = Server::start(&options.name.namespace(Room::Host2), SERVER.1, KERNEL, &content)?;
    let (clock, next) = (Clock::start(), Arc::new(AtomicUsize::new(0)));
    let browsers: io::Result<Vec<_>> = (0..page.parallel)
        .map(|_| {
            let (page, content, next) = (page.clone(), Arc::clone(&content), Arc::clone(&next));
            options.name.namespace(Room::Host1).enter(move || browse(&page, &content, &next))
        })
        .collect();
    let mut result = Ok(());
    for browser in browsers? {
        result = result.and(browser.join().map_err(|_| broken("a browser's thread panicked"))??);
    }
    let elapsed = clock.now().saturating_since(Instant::ZERO);
    result.and(server.finish())?;
    Ok(elapsed)
}

/// Fetches objects until there are none left.
fn browse(page: &Page, content: &[u8], next: &AtomicUsize) -> io::Result<()> {
    let mut kept = None;
    while let Some(&len) = page.objects.get(next.fetch_add(1, Ordering::Relaxed)) {
        let mut stream = match kept.take() {
            Some(stream) => stream,
            None => KERNEL.connect(SocketAddr::from(SERVER))?,
        };
        objects::fetch(&mut stream, len, content)?;
        kept = page.reuse.then_some(stream);
    }
    Ok(())
}

fn broken(message: &str) -> io::Error {
    io::Error::other(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_objects_of_all_sizes() {
        let mut page = Page::spread(40, 5_000, 100_000, 6, false);
        page.objects.sort_unstable();
        assert_eq!((page.objects.len(), page.objects[0], page.objects[39]), (40, 5_000, 100_000));
        assert!(page.objects.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
