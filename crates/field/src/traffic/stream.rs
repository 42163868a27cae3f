//! A stream of stamped records on a socket: its sender and its receiver, the same at both ends.
//!
//! Bulk streams are records too, sent back to back. A record without content is the end of a stream, so that
//! one that breaks off never passes for one that is over.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use base::content::Content;
use base::wire::record::{HEADER_LEN, Header, Item, Reader, RecordError};
use base::{Duration, Instant};

use super::measurement::Observation;
use super::offset::Offset;
use super::request::{Extent, LONGEST_RECORD, Model};
use gateway::clock::{monotonic, sleep};

/// The content of all streams; which stream is said with the request.
pub(super) static CONTENT: LazyLock<Content> = LazyLock::new(|| Content::new(0));

/// Bytes of a bulk stream's records.
const BULK_RECORD: u64 = 16 * 1024;
/// Bytes of one read.
const CHUNK: usize = 128 * 1024;

/// Why a stream did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The system's word.
    #[error("{0}")]
    Io(io::Error),
    /// The peer closed it.
    #[error("the peer closed the connection after {0} bytes, before the end")]
    Closed(u64),
    /// Nothing came, or nothing was taken, for as long as patience lasts.
    #[error("no data moved for {0}, after {1} bytes")]
    Stalled(Duration, u64),
    /// Another byte than was sent.
    #[error("the content is damaged after byte {0}")]
    Damaged(u64),
    /// A header that cannot be.
    #[error("after byte {1}: {0}")]
    Record(RecordError, u64),
}

impl Broken {
    /// What `error` means on a socket that has moved `bytes` and waits as long as `patience`.
    pub(super) fn of(error: io::Error, socket: &TcpStream, bytes: u64) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let patience = socket.read_timeout().ok().flatten().unwrap_or_default();
                Self::Stalled(Duration::from_nanos(patience.as_nanos() as u64), bytes)
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => Self::Closed(bytes),
            _ => Self::Io(error),
        }
    }
}

/// Sends the stream of a bulk or rate-controlled model, and its end. `moved` counts along.
pub(super) fn send(
    socket: &TcpStream,
    model: &Model,
    stream: u32,
    offset: &Offset,
    moved: &AtomicU64,
) -> Result<(), Broken> {
    let mut sender = Sender { socket, stream, content: 0, bytes: 0, moved };
    let start = monotonic();
    let since = || monotonic().saturating_since(start);
    match *model {
        Model::Bulk { extent, .. } => loop {
            let left = match extent {
                Extent::Size(size) => size - sender.bytes,
                Extent::Duration(duration) if since() < duration => BULK_RECORD,
                Extent::Duration(_) => 0,
            };
            if left == 0 {
                break;
            }
            sender.record(offset.at_server(monotonic()), bulk_record(left))?;
        },
        Model::Rate { rate, record, duration, .. } => {
            for due in due_times(rate, record, duration) {
                let passed = since();
                // What is due by now and waits still has to go; what can only go after the end does not.
                if passed >= duration {
                    break;
                }
                sleep(Duration::from_nanos(due.as_nanos().saturating_sub(passed.as_nanos())));
                sender.record(offset.at_server(start + due), record)?;
            }
        }
        Model::Transaction { .. } | Model::Clock => {}
    }
    sender.record(offset.at_server(monotonic()), HEADER_LEN as u32)?;
    socket.shutdown(Shutdown::Write).map_err(|error| Broken::of(error, socket, sender.bytes))
}

/// When the records of a rate-controlled stream are due, since its beginning: no remainder is lost.
pub(super) fn due_times(rate: base::Rate, record: u32, duration: Duration) -> impl Iterator<Item = Duration> {
    let bits = u64::from(record) * 8;
    (0_u64..).map(move |k| rate.time_for(k.saturating_mul(bits))).take_while(move |&due| due < duration)
}

/// The length of the next record of `left` bytes: what is left after it is nothing, or has room for a record.
fn bulk_record(left: u64) -> u32 {
    let shortest = HEADER_LEN as u64 + 1;
    let record = left.min(BULK_RECORD);
    let after = left - record;
    if (1..shortest).contains(&after) { (left - shortest) as u32 } else { record as u32 }
}

struct Sender<'a> {
    socket: &'a TcpStream,
    stream: u32,
    /// Content bytes sent.
    content: u64,
    /// Bytes sent.
    bytes: u64,
    moved: &'a AtomicU64,
}

impl Sender<'_> {
    fn record(&mut self, stamp: Instant, len: u32) -> Result<(), Broken> {
        let header = Header { stamp, len }.emit();
        let mut written = 0_usize;
        while written < len as usize {
            let head = &header[written.min(HEADER_LEN)..];
            let left = len as usize - written - head.len();
            let body = if left == 0 { &[][..] } else { CONTENT.slice(self.stream, self.content, left) };
            let mut socket = self.socket;
            let count = match socket.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
                Ok(0) => return Err(Broken::Closed(self.bytes)),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Broken::of(error, self.socket, self.bytes)),
            };
            written += count;
            self.content += (count - count.min(head.len())) as u64;
            self.bytes += count as u64;
            self.moved.fetch_add(count as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Receives a stream until its end and checks every byte; times count from `origin`. `moved` counts along.
pub(super) fn receive(
    mut socket: &TcpStream,
    stream: u32,
    origin: Instant,
    offset: &Offset,
    moved: &AtomicU64,
) -> Result<Observation, Broken> {
    let mut seen = Observation::default();
    let mut reader = Reader::new(LONGEST_RECORD);
    let (mut bytes, mut content) = (0_u64, 0_u64);
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match socket.read(&mut buffer) {
            Ok(0) => return Err(Broken::Closed(bytes)),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Broken::of(error, socket, bytes)),
        };
        let now = monotonic();
        let mut rest = &buffer[..count];
        let before = bytes;
        let mut over = false;
        while let Some(item) = reader.next(&mut rest).map_err(|error| Broken::Record(error, before))? {
            match item {
                Item::Content(piece) => {
                    if !CONTENT.matches(stream, content, piece) {
                        return Err(Broken::Damaged(before));
                    }
                    content += piece.len() as u64;
                }
                Item::Complete(header) if header.content_len() == 0 => {
                    over = true;
                    break;
                }
                Item::Complete(header) => seen.on_record(offset.age(header.stamp, now)),
            }
        }
        // The mark of the end is none of the stream's bytes.
        let marks = if over { HEADER_LEN + rest.len() } else { 0 };
        let counted = count.saturating_sub(marks) as u64;
        bytes += counted;
        moved.fetch_add(counted, Ordering::Relaxed);
        if counted > 0 {
            seen.on_bytes(now.saturating_since(origin), counted);
        }
        if over {
            if !rest.is_empty() {
                return Err(Broken::Damaged(bytes));
            }
            // A mark that came in two pieces: its beginning was counted.
            seen.bytes = content + seen.records * HEADER_LEN as u64;
            return Ok(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rate;
    use proptest::prelude::*;

    #[test]
    fn records_are_due_at_their_rate_and_not_after_the_end() {
        let due: Vec<_> = due_times(Rate::from_bps(3), 1, Duration::from_secs(8)).collect();
        assert_eq!(due.len(), 3);
        assert_eq!(due[1], Duration::from_nanos(2_666_666_667));
        assert_eq!(due[2], Duration::from_nanos(5_333_333_334));
        assert_eq!(due_times(Rate::from_bps(50_000), 1000, Duration::from_secs(60)).count(), 375);
    }

    proptest! {
        #[test]
        fn a_bulk_stream_is_cut_into_records_to_the_byte(size in 13_u64..200_000) {
            let mut left = size;
            while left > 0 {
                let record = bulk_record(left);
                prop_assert!(record as usize > HEADER_LEN && u64::from(record) <= left, "{record} of {left}");
                left -= u64::from(record);
            }
        }
    }
}
