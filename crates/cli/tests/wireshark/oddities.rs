//! Frames that no sender makes, in a capture of a link.

use core::cell::RefCell;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use base::{Duration, Instant, Rng};
use channel::Fate;
use lab::observe::events::LinkDirection;
use lab::observe::{Capture, Format, Sighting};
use lab::scenario::Suite;
use link::FrameKind;

/// Every protocol as a scenario writes it, with the framing.
pub(crate) const PROTOCOLS: [(&str, &str); 8] = [
    ("\"plain\"", "ideal"),
    ("\"cotmll-thesis\"", "ideal"),
    ("\"cotmll-thesis\"", "efl"),
    ("\"cotmll-thesis\"", "encrypted-efl"),
    ("\"cotmll\"", "ideal"),
    ("\"slacp\"", "ideal"),
    ("\"coded\"", "ideal"),
    ("\"harq\"", "ideal"),
];

/// The format of a link with this protocol.
pub(crate) fn format(protocol: &str, framing: &str) -> Format {
    let text = format!(
        "name = \"one link\"\nduration = \"1 s\"\n[link.sky]\nends = [\"a\", \"b\"]\nprotocol = {protocol}\n\
         framing = \"{framing}\"\n[link.sky.channel]\nrate = \"1 Mbit/s\"\ndelay = \"0 s\"\n\
         [traffic.one.bulk]\nfrom = \"a\"\nto = \"b\"\n"
    );
    let suite = Suite::parse("one.toml", &text, Path::new(""), &[]).unwrap();
    Format::of(&suite.scenario.link["sky"]).unwrap()
}

/// Writes frames of these bytes to a file.
pub(crate) fn write(file: &Path, format: Format, frames: &[Vec<u8>]) {
    let capture = Capture::of_link(Box::new(File::create(file).unwrap()), "sky", Some(format)).unwrap();
    let capture = Rc::new(RefCell::new(capture));
    let tap = Capture::tap(&capture, LinkDirection::Down);
    for (place, bytes) in frames.iter().enumerate() {
        let at = Instant::ZERO + Duration::from_millis(place as u64);
        let sighting = Sighting {
            number: place as u64 + 1,
            kind: FrameKind::New,
            bits: bytes.len() as u32 * 8,
            on_air: at..at,
            arrives_at: at,
            fate: Fate::Intact,
            bytes,
            has_preamble: false,
        };
        tap.on_frame(at, &sighting);
    }
    capture.borrow_mut().finish().unwrap();
}

/// An IPv4 packet, with a header and nothing else that is said of it, in as many fragments of a link without a protocol as
/// `order` has numbers, in that order. Each carries `length` bytes; the packet's first fragment has number `from`.
pub(crate) fn fragments(order: &[u32], from: u32, length: usize) -> Vec<Vec<u8>> {
    let total = order.len() * length;
    let mut packet = vec![0x45, 0];
    packet.extend(u16::try_from(total).unwrap().to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.resize(total, 0);
    let last = order.len() as u32 - 1;
    let fragment = |&place: &u32| {
        let flags = 0x10 | u32::from(place == 0) << 1 | u32::from(place == last);
        let head = (flags << 24 | (from + place)).to_be_bytes();
        [&head[..], &packet[place as usize * length..][..length]].concat()
    };
    order.iter().map(fragment).collect()
}

/// Frames of random bytes of every length up to 60, several of each.
pub(crate) fn random() -> Vec<Vec<u8>> {
    let mut rng = Rng::named(1, "oddities");
    let mut byte = || rng.bits() as u8;
    (0..=60).flat_map(|len| [len; 8]).map(|len| (0..len).map(|_| byte()).collect()).collect()
}
