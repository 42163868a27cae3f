//! The file as a reader of pcapng takes it apart.

use super::*;
use base::Duration;

/// A writer that the test reads afterwards.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The blocks' types and bodies.
fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let len = word(&file[4..]) as usize;
        assert_eq!((word(&file[len - 4..]) as usize, len % 4), (len, 0));
        blocks.push((word(file), file[8..len - 4].to_vec()));
        file = &file[len..];
    }
    blocks
}

#[test]
fn a_node_has_sent_or_received_a_packet() {
    let shared = Shared::default();
    let mut capture = Capture::of_node(Box::new(shared.clone()), "hub").unwrap();
    let at = Instant::from_nanos(3_000_000_007);
    for direction in [Direction::Sent, Direction::Received] {
        capture.on_packet(at, direction, &Packet::from_slice(&[0x45; 40]));
    }
    capture.finish().unwrap();
    let blocks = blocks(&shared.0.borrow());
    assert_eq!(blocks.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 6, 6]);
    assert!(String::from_utf8_lossy(&blocks[1].1).contains("hub"));
    for ((_, body), flags) in blocks[2..].iter().zip([2, 1]) {
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
        // Interface, time, lengths; behind the packet an option of four bytes.
        assert_eq!([0, 4, 8, 12, 16].map(word), [0, 0, 3_000_000_007, 40, 40]);
        assert_eq!((word(60) & 0xffff, word(64)), (2, flags));
    }
}

#[test]
fn packets_are_in_the_order_of_their_arrival_and_marked() {
    let shared = Shared::default();
    let capture = Capture::of_link(Box::new(shared.clone()), "sky", None).unwrap();
    let capture = Rc::new(RefCell::new(capture));
    let [down, up] = [LinkDirection::Down, LinkDirection::Up].map(|way| Capture::tap(&capture, way));
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    down.on_packet(at(0), at(250), Fate::Intact, &[1; 5]);
    up.on_packet(at(1), at(100), Fate::Damaged(3), &[2; 8]);
    down.on_packet(at(2), at(252), Fate::Lost, &[3; 6]);
    // Never arrives: the time at which it was to leave.
    up.on_packet(at(101), Instant::MAX, Fate::Lost, &[4; 4]);
    assert_eq!(blocks(&shared.0.borrow()).len(), 4, "what has arrived is written at once");
    capture.borrow_mut().finish().unwrap();

    let blocks = blocks(&shared.0.borrow());
    let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 6, 6, 6]);
    let texts: Vec<String> =
        blocks.iter().map(|(_, body)| String::from_utf8_lossy(body).into_owned()).collect();
    assert!(texts[1].contains("sky/down") && texts[2].contains("sky/up"));
    let packets: Vec<_> = blocks[3..]
        .iter()
        .map(|(_, body)| {
            let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
            let nanos = u64::from(word(4)) << 32 | u64::from(word(8));
            (word(0), nanos / 1_000_000, word(12), body[20])
        })
        .collect();
    assert_eq!(packets, [(1, 100, 8, 2), (1, 101, 4, 4), (0, 250, 5, 1), (0, 252, 6, 3)]);
    assert!(texts[3].contains("damaged") && texts[4].contains("lost") && texts[6].contains("lost"));
    assert!(!texts[5].contains("damaged") && !texts[5].contains("lost"));
}
