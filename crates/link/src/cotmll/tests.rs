//! Scripts: one end under test, the other end written by hand.

use base::Duration;

use super::*;

mod acknowledging;
mod classes;
mod delivering;
mod hostile;
mod persisting;
mod sending;

const NOW: Instant = Instant::ZERO;

fn endpoint(window: u32) -> Cotmll {
    with(Config { window: window.try_into().unwrap(), ..Config::default() })
}

fn unordered() -> Cotmll {
    with(Config { ordered: false, ..Config::default() })
}

fn with(config: Config) -> Cotmll {
    Cotmll::new(config, &LineLimits::default())
}

/// A frame as it left.
#[derive(Debug, PartialEq)]
struct Sent {
    kind: FrameKind,
    trailer: Trailer,
    payload: Vec<u8>,
}

fn next(endpoint: &mut Cotmll) -> Sent {
    let mut frame = Vec::new();
    let info = endpoint.poll_frame(NOW, &mut frame).expect("the line is never idle");
    assert_eq!(info.late_len, TRAILER_LEN);
    endpoint.seal_frame(NOW, &mut frame);
    let (trailer, payload) = Trailer::parse(&frame).unwrap();
    Sent { kind: info.kind, trailer, payload: payload.to_vec() }
}

/// What goes next: its kind and sequence number.
fn action(endpoint: &mut Cotmll) -> (FrameKind, u16) {
    let sent = next(endpoint);
    (sent.kind, sent.trailer.tx)
}

fn actions(endpoint: &mut Cotmll, count: usize) -> Vec<(FrameKind, u16)> {
    (0..count).map(|_| action(endpoint)).collect()
}

fn offer(endpoint: &mut Cotmll, byte: u8, len: usize) {
    endpoint.offer(NOW, Packet::from_slice(&vec![byte; len]), Treatment::Reliable).unwrap();
}

/// Sends `count` packets of one frame each.
fn send_new(endpoint: &mut Cotmll, count: usize) {
    for n in 0..count {
        offer(endpoint, n as u8, 100);
        assert_eq!(next(endpoint).kind, FrameKind::New);
    }
}

fn deliver(endpoint: &mut Cotmll, trailer: Trailer, payload: &[u8]) -> Result<(), Discard> {
    endpoint.handle_frame(NOW, &[payload, &trailer.emit()].concat())
}

fn ack(endpoint: &mut Cotmll, ack: Ack) {
    let trailer = Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack };
    deliver(endpoint, trailer, &[]).unwrap();
}

fn cumulative(number: u16) -> Ack {
    Ack::Cumulative(number)
}

fn block(start: u16, count: u8) -> Ack {
    Ack::Block { start, count }
}

/// A packet of one frame arrives.
fn arrive(endpoint: &mut Cotmll, tx: u64, byte: u8) -> Result<(), Discard> {
    fragment(endpoint, tx, true, true, byte)
}

fn fragment(endpoint: &mut Cotmll, tx: u64, first: bool, last: bool, byte: u8) -> Result<(), Discard> {
    let tx = (tx % 1024) as u16;
    let trailer = Trailer { protocol: SubProtocol::Reliable, first, last, tx, ack: cumulative(0) };
    deliver(endpoint, trailer, &[byte; 3])
}

/// The bytes that each packet that went up is made of.
fn delivered(endpoint: &mut Cotmll) -> Vec<Vec<u8>> {
    core::iter::from_fn(|| endpoint.poll_packet()).map(|packet| packet.to_vec()).collect()
}

fn count(endpoint: &Cotmll, name: &str) -> u64 {
    endpoint.counters().iter().find(|(n, _)| *n == name).unwrap().1
}
