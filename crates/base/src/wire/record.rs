//! Records: what a rate-controlled test stream consists of, so that its receiver can tell the latency.
//!
//! A record is a stamp (8 bytes, nanoseconds), the length of the whole record in bytes (4 bytes) and content
//! that fills it; numbers are big-endian. The next record follows at once. The content bytes of a stream's
//! records are one sequence, into which the headers are laid.

use crate::time::Instant;

/// Bytes of the stamp and the length.
pub const HEADER_LEN: usize = 12;
/// The longest record: a length field beyond it is damage rather than a record.
pub const LONGEST: u32 = 1 << 30;

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When the record was due, by the sender's clock.
    pub stamp: Instant,
    /// Bytes of the whole record, this header among them.
    pub len: u32,
}

/// A length field that no record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Shorter than its own header.
    #[error("a record of {0} bytes; its header alone has {HEADER_LEN}")]
    Short(u32),
    /// Longer than the reader takes.
    #[error("a record of {len} bytes; at most {longest} are allowed")]
    Long {
        /// What the field says.
        len: u32,
        /// What is allowed.
        longest: u32,
    },
}

impl Header {
    /// The bytes that open the record.
    #[must_use]
    pub fn emit(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&self.stamp.as_nanos().to_be_bytes());
        bytes[8..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }

    /// Reads `bytes`; a record has at most `longest` of them.
    ///
    /// # Errors
    /// A length below the header's own or beyond `longest`.
    pub fn parse(bytes: &[u8; HEADER_LEN], longest: u32) -> Result<Self, RecordError> {
        let [s0, s1, s2, s3, s4, s5, s6, s7, l0, l1, l2, l3] = *bytes;
        let stamp = Instant::from_nanos(u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]));
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        if (len as usize) < HEADER_LEN {
            return Err(RecordError::Short(len));
        }
        if len > longest {
            return Err(RecordError::Long { len, longest });
        }
        Ok(Self { stamp, len })
    }

    /// Content bytes of the record.
    #[must_use]
    pub const fn content_len(self) -> u32 {
        self.len - HEADER_LEN as u32
    }
}

/// What a [`Reader`] finds in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The next content bytes, at least one; a record's content may come in several of these.
    Content(&'a [u8]),
    /// The record's last byte has come.
    Complete(Header),
}

/// Takes a stream apart, in whatever pieces it comes. Holds a header and nothing else.
#[derive(Clone, Debug)]
pub struct Reader {
    longest: u32,
    header: [u8; HEADER_LEN],
    header_have: usize,
    record: Option<(Header, u32)>,
}

impl Reader {
    /// At the start of a stream whose records have at most `longest` bytes.
    #[must_use]
    pub const fn new(longest: u32) -> Self {
        Self { longest, header: [0; HEADER_LEN], header_have: 0, record: None }
    }

    /// Whether the stream may end here: between two records.
    #[must_use]
    pub const fn is_between_records(&self) -> bool {
        self.header_have == 0 && self.record.is_none()
    }

    /// Finds the next item and takes its bytes from the front of `bytes`; `None` when all are taken.
    ///
    /// # Errors
    /// An impossible length; what follows in the stream cannot be told any more and must not be handed in.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Item<'a>>, RecordError> {
        if self.record.is_none() {
            let taken = take(bytes, HEADER_LEN - self.header_have);
            self.header[self.header_have..][..taken.len()].copy_from_slice(taken);
            self.header_have += taken.len();
            if self.header_have < HEADER_LEN {
                return Ok(None);
            }
            let header = Header::parse(&self.header, self.longest)?;
            self.header_have = 0;
            self.record = Some((header, header.content_len()));
        }
        let Some((header, missing)) = &mut self.record else { return Ok(None) };
        if *missing == 0 {
            let header = *header;
            self.record = None;
            return Ok(Some(Item::Complete(header)));
        }
        let taken = take(bytes, *missing as usize);
        *missing -= taken.len() as u32;
        Ok((!taken.is_empty()).then_some(Item::Content(taken)))
    }
}

fn take<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(most.min(bytes.len()));
    *bytes = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(nanos: u64, len: u32) -> Header {
        Header { stamp: Instant::from_nanos(nanos), len }
    }

    #[test]
    fn a_header_is_twelve_bytes_in_network_order() {
        let bytes = header(0x0102_0304_0506_0708, 0x0a0b).emit();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x0a, 0x0b]);
        assert_eq!(Header::parse(&bytes, 0x0a0b), Ok(header(0x0102_0304_0506_0708, 0x0a0b)));
    }

    #[test]
    fn impossible_lengths_are_told() {
        for len in [0, 11] {
            assert_eq!(Header::parse(&header(0, len).emit(), 1000), Err(RecordError::Short(len)));
        }
        for len in [1001, u32::MAX] {
            let error = RecordError::Long { len, longest: 1000 };
            assert_eq!(Header::parse(&header(0, len).emit(), 1000), Err(error));
            assert_eq!(Reader::new(1000).next(&mut &header(0, len).emit()[..]), Err(error));
        }
        assert!(Header::parse(&header(0, 12).emit(), 1000).is_ok());
        assert!(Header::parse(&header(0, 1000).emit(), 1000).is_ok());
    }

    #[test]
    fn a_record_without_content_is_complete_with_its_header() {
        let bytes = header(7, 12).emit();
        let mut reader = Reader::new(LONGEST);
        assert!(reader.is_between_records());
        assert_eq!(reader.next(&mut &bytes[..11]), Ok(None));
        assert!(!reader.is_between_records());
        assert_eq!(reader.next(&mut &bytes[11..]), Ok(Some(Item::Complete(header(7, 12)))));
        assert!(reader.is_between_records());
    }

    proptest! {
        #[test]
        fn records_and_content_come_whole_however_the_stream_is_cut(
            records in prop::collection::vec((any::<u64>(), 0_usize..300), 0..20),
            cuts in prop::collection::vec(1_usize..200, 1..50),
        ) {
            let mut stream = Vec::new();
            let mut content = Vec::new();
            let mut headers = Vec::new();
            for &(nanos, len) in &records {
                let header = header(nanos, (HEADER_LEN + len) as u32);
                let bytes: Vec<u8> = (0..len).map(|at| (content.len() + at) as u8).collect();
                stream.extend_from_slice(&header.emit());
                stream.extend_from_slice(&bytes);
                content.extend_from_slice(&bytes);
                headers.push((header, content.len()));
            }
            let mut reader = Reader::new(1000);
            let (mut found, mut carried) = (Vec::new(), Vec::new());
            let mut rest = stream.as_slice();
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let mut chunk = take(&mut rest, *cuts.next().expect("it goes round"));
                while let Some(item) = reader.next(&mut chunk).expect("no length is impossible") {
                    match item {
                        Item::Content(bytes) => carried.extend_from_slice(bytes),
                        Item::Complete(header) => found.push((header, carried.len())),
                    }
                }
                prop_assert!(chunk.is_empty());
            }
            prop_assert_eq!(found, headers);
            prop_assert_eq!(carried, content);
            prop_assert!(reader.is_between_records());
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..50),
        ) {
            let mut reader = Reader::new(100);
            'stream: for chunk in &chunks {
                let mut chunk = chunk.as_slice();
                loop {
                    match reader.next(&mut chunk) {
                        Ok(Some(Item::Content(bytes))) => prop_assert!(!bytes.is_empty()),
                        Ok(Some(Item::Complete(header))) => prop_assert!((12..=100).contains(&header.len)),
                        Ok(None) => break,
                        Err(_) => break 'stream,
                    }
                }
                prop_assert!(chunk.is_empty());
            }
        }
    }
}
