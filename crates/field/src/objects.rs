//! A server of objects: a request is the number of bytes that are wanted, in four bytes.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time;

use crate::comparison::transfer::panicked;
use crate::download::{Kernel, accept};
use crate::testbed::namespaces::Namespace;
use socket2::Socket;

/// A server that runs until it is told to finish.
pub(crate) struct Server {
    over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<io::Result<()>>>,
}

/// For a read: what takes longer is broken.
pub(crate) const PATIENCE: time::Duration = time::Duration::from_secs(120);
const BACKLOG: i32 = 128;

impl Server {
    /// Listens at this port from now on. Objects are beginnings of `content`.
    pub(crate) fn start(
        namespace: &Namespace,
        port: u16,
        kernel: Kernel,
        content: &Arc<[u8]>,
    ) -> io::Result<Self> {
        let listener =
            namespace.enter(move || kernel.listen(port, BACKLOG))?.join().map_err(|_| panicked())???;
        let over = Arc::new(AtomicBool::new(false));
        let (told, content) = (Arc::clone(&over), Arc::clone(content));
        let thread = namespace.enter(move || serve(&listener, &content, &told))?;
        Ok(Self { over, thread })
    }

    /// Ends it.
    ///
    /// # Errors
    /// What went wrong meanwhile.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.over.store(true, Ordering::Release);
        self.thread.join().map_err(|_| panicked())??
    }
}

/// Asks for an object and checks every byte of it.
///
/// # Errors
/// A connection that breaks or stands still, or a byte that changed.
pub(crate) fn fetch(stream: &mut TcpStream, len: usize, content: &[u8]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&(len as u32).to_be_bytes())?;
    let mut object = vec![0; len];
    stream.read_exact(&mut object)?;
    if object == content[..len] { Ok(()) } else { Err(io::Error::other("an object arrived changed")) }
}

fn serve(listener: &Socket, content: &Arc<[u8]>, over: &AtomicBool) -> io::Result<()> {
    while let Some(stream) = accept(listener, over)? {
        let content = Arc::clone(content);
        // Who asked notices if it ends early.
        std::thread::spawn(move || answer(stream, &content));
    }
    Ok(())
}

fn answer(mut stream: TcpStream, content: &[u8]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = [0; 4];
    while stream.read_exact(&mut request).is_ok() {
        let len = (u32::from_be_bytes(request) as usize).min(content.len());
        stream.write_all(&content[..len])?;
    }
    Ok(())
}
