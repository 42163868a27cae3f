//! What applications ask of their connections.

use std::sync::Arc;

use base::Instant;

use super::{ConnectionError, ConnectionId, Host};
use crate::buffer::send::Source;
use crate::connection::Connection;

impl Host {
    /// Gives bytes to send; the number taken. If it is less than given, [`Event::Writable`](crate::Event::Writable) follows.
    ///
    /// # Errors
    /// The connection is unknown, failed, or finished on this side.
    pub fn write(&mut self, _now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, ConnectionError> {
        let taken = self.live_mut(id)?.write(data)?;
        self.touch(id.slot);
        Ok(taken)
    }

    /// Like [`Host::write`] for up to `len` bytes that `fill` puts in place, in one or two pieces.
    ///
    /// # Errors
    /// The connection is unknown, failed, or finished on this side.
    pub fn write_with(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        len: usize,
        fill: impl FnMut(&mut [u8]),
    ) -> Result<usize, ConnectionError> {
        let taken = self.live_mut(id)?.write_with(len, fill)?;
        self.touch(id.slot);
        Ok(taken)
    }

    /// Like [`Host::write`] for up to `len` bytes of `source` from `offset` on, which no buffer keeps: they are had again
    /// from the source when they are sent.
    ///
    /// # Errors
    /// The connection is unknown, failed, or finished on this side.
    pub fn write_from(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        source: &Arc<dyn Source>,
        offset: u64,
        len: usize,
    ) -> Result<usize, ConnectionError> {
        let taken = self.live_mut(id)?.write_from(source, offset, len)?;
        self.touch(id.slot);
        Ok(taken)
    }

    /// Copies received bytes to `out`; the number copied. Zero means that there are none yet, or that the peer has
    /// finished, which [`Connection::peer_finished`] tells.
    ///
    /// # Errors
    /// The connection is unknown, or failed and nothing is left to read.
    pub fn read(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        out: &mut [u8],
    ) -> Result<usize, ConnectionError> {
        let connection = self.live_mut(id)?;
        let count = connection.read(out);
        let failure = connection.failure().filter(|_| count == 0);
        self.touch(id.slot);
        failure.map_or(Ok(count), |failure| Err(failure.into()))
    }

    /// The bytes that can be read, in two pieces where the buffer wraps.
    ///
    /// # Errors
    /// The connection is unknown.
    pub fn peek(&self, id: ConnectionId) -> Result<(&[u8], &[u8]), ConnectionError> {
        self.known(id).map(Connection::peek)
    }

    /// Drops `count` bytes that were read in place.
    ///
    /// # Errors
    /// The connection is unknown.
    pub fn consume(&mut self, _now: Instant, id: ConnectionId, count: usize) -> Result<(), ConnectionError> {
        self.live_mut(id)?.consume(count);
        self.touch(id.slot);
        Ok(())
    }

    /// Hands all bytes that can be read to `sink`, in one or two pieces, and drops them; their number.
    ///
    /// # Errors
    /// The connection is unknown, or failed and nothing is left to read.
    pub fn read_with(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<usize, ConnectionError> {
        let connection = self.live_mut(id)?;
        let (first, second) = connection.peek();
        let count = first.len() + second.len();
        for part in [first, second] {
            if !part.is_empty() {
                sink(part);
            }
        }
        connection.consume(count);
        let failure = connection.failure().filter(|_| count == 0);
        self.touch(id.slot);
        failure.map_or(Ok(count), |failure| Err(failure.into()))
    }

    /// No more data from this side; what was written is still sent. The peer may go on.
    ///
    /// # Errors
    /// The connection is unknown.
    pub fn finish(&mut self, _now: Instant, id: ConnectionId) -> Result<(), ConnectionError> {
        self.live_mut(id)?.finish();
        self.touch(id.slot);
        Ok(())
    }

    /// The application is done with the connection: what was written is still sent, for as long as the peer takes it, and
    /// nothing more is read. If data were not read, or if more come, the peer gets a reset.
    ///
    /// # Errors
    /// The connection is unknown.
    pub fn close(&mut self, now: Instant, id: ConnectionId) -> Result<(), ConnectionError> {
        self.live_mut(id)?.close(now);
        self.touch(id.slot);
        Ok(())
    }

    /// Ends the connection at once, with a reset to the peer; unsent and unread data are lost.
    ///
    /// # Errors
    /// The connection is unknown.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) -> Result<(), ConnectionError> {
        self.live_mut(id)?.abort(now);
        self.touch(id.slot);
        Ok(())
    }
}
