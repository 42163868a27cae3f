//! Random bytes as a traffic request and, in random pieces, as a stream of records.

#![no_main]

use base::wire::record::{Item, Reader};
use field::traffic::request::{LONGEST_RECORD, REQUEST_LEN, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(header) = bytes.first_chunk::<REQUEST_LEN>()
        && let Ok(request) = Request::parse(header)
    {
        assert_eq!(Request::parse(&request.emit()), Ok(request));
    }
    let mut reader = Reader::new(LONGEST_RECORD);
    let mut rest = bytes;
    while let Some((&len, tail)) = rest.split_first() {
        let (mut piece, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        loop {
            match reader.next(&mut piece) {
                Ok(Some(Item::Complete(header))) => assert!(header.len <= LONGEST_RECORD),
                Ok(Some(Item::Content(content))) => assert!(!content.is_empty()),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(piece.is_empty());
    }
});
