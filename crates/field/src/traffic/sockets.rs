//! The sockets in use, so that whoever ends can end them all; and what is set on each.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

use base::Duration;
use base::content::Content;
use socket2::SockRef;

use super::request::Congestion;
use super::stream::Broken;

/// Sockets by number; a socket that is ended wakes the thread that waits on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    ended: bool,
    sockets: BTreeMap<u64, Arc<TcpStream>>,
}

/// A socket among those in use; it leaves them when dropped.
#[derive(Debug)]
pub(super) struct InUse {
    sockets: Sockets,
    number: u64,
    socket: Arc<TcpStream>,
}

impl Sockets {
    /// Takes a socket in; `None` when all are to end.
    pub(super) fn add(&self, socket: TcpStream) -> Option<InUse> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.ended {
            return None;
        }
        let (number, socket) = (open.next, Arc::new(socket));
        open.next += 1;
        open.sockets.insert(number, Arc::clone(&socket));
        Some(InUse { sockets: self.clone(), number, socket })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sockets.len()
    }

    /// Ends all, and those that would still come.
    pub(super) fn end_all(&self) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.ended = true;
        for socket in open.sockets.values() {
            // One that the peer has ended already needs nothing more.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether all are to end.
    pub(super) fn have_ended(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ended
    }
}

impl core::ops::Deref for InUse {
    type Target = TcpStream;
    fn deref(&self) -> &TcpStream {
        &self.socket
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.sockets.0.lock().unwrap_or_else(PoisonError::into_inner).sockets.remove(&self.number);
    }
}

/// Lets nothing on the socket wait for longer than `patience`, nor small pieces for company.
pub(super) fn prepare(socket: &TcpStream, patience: Duration) -> io::Result<()> {
    let patience = time::Duration::from_nanos(patience.as_nanos());
    socket.set_read_timeout(Some(patience))?;
    socket.set_write_timeout(Some(patience))?;
    socket.set_nodelay(true)
}

pub(super) fn set_congestion(socket: &TcpStream, congestion: Congestion) -> io::Result<()> {
    SockRef::from(socket).set_tcp_congestion(congestion.as_bytes())
}

/// Writes `len` bytes of a stream's content, from its beginning.
pub(super) fn write_content(
    mut socket: &TcpStream,
    content: &Content,
    stream: u32,
    len: u64,
) -> Result<(), Broken> {
    let mut written = 0;
    while written < len {
        let left = usize::try_from(len - written).unwrap_or(usize::MAX);
        let piece = content.slice(stream, written, left);
        socket.write_all(piece).map_err(|error| Broken::of(error, socket, written))?;
        written += piece.len() as u64;
    }
    Ok(())
}

/// Reads `len` bytes of a stream's content, from its beginning, and checks them.
pub(super) fn read_content(
    mut socket: &TcpStream,
    content: &Content,
    stream: u32,
    len: u64,
) -> Result<(), Broken> {
    use std::io::Read as _;
    let mut buffer = vec![0; (len as usize).clamp(1, 64 * 1024)];
    let mut read = 0;
    while read < len {
        let most = buffer.len().min(usize::try_from(len - read).unwrap_or(usize::MAX));
        let count = match socket.read(&mut buffer[..most]) {
            Ok(0) => return Err(Broken::Closed(read)),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Broken::of(error, socket, read)),
        };
        if !content.matches(stream, read, &buffer[..count]) {
            return Err(Broken::Damaged(read));
        }
        read += count as u64;
    }
    Ok(())
}
