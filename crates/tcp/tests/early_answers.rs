//! Data that come with the answer to a SYN: right behind it, or before it.

use std::net::SocketAddr;
use std::sync::Arc;

use base::wire::ip::{self, Ecn};
use base::wire::tcp::{self, Flags, Options};
use base::{Duration, Instant, Packet, SeqNum};
use longhaul_tcp::connection::{Connection, Discard, Seeds, State};
use longhaul_tcp::{Event, Failure, TcpConfig};

const NOW: Instant = Instant::ZERO;
const ISS: SeqNum = SeqNum(u32::MAX - 10);
const IRS: SeqNum = SeqNum(u32::MAX - 2000);

/// A connection whose SYN is about to leave; that of a proxy, if `proxy_mss` says so, with `early` bytes of data.
fn called(proxy_mss: Option<u16>, early: usize) -> Connection {
    let name = if proxy_mss.is_some() { "proxy-link" } else { "linux" };
    let config = TcpConfig { proxy_mss, timestamps: false, ..TcpConfig::preset(name).unwrap() };
    let ends: [SocketAddr; 2] = ["10.0.0.1:4000", "10.0.0.2:80"].map(|it| it.parse().unwrap());
    let seeds = Seeds { initial_sequence: ISS, timestamp_offset: 0 };
    let mut connection = Connection::connect(Arc::new(config), ends[0], ends[1], seeds);
    connection.write(&vec![5; early]).unwrap();
    connection
}

/// A connection whose SYN has left; that of a proxy, if `proxy_mss` says so, with `early` bytes of data.
fn calling(proxy_mss: Option<u16>, early: usize) -> Connection {
    let mut connection = called(proxy_mss, early);
    assert_eq!(sent(&mut connection).unwrap().flags, Flags::SYN);
    connection
}

fn sent(connection: &mut Connection) -> Option<tcp::Repr> {
    let mut packet = Packet::default();
    connection.poll_transmit(NOW, &mut packet).then(|| {
        let view = ip::View::parse(&packet).unwrap();
        let segment = tcp::View::parse(view.payload()).unwrap();
        tcp::Repr::parse(&segment, view.src(), view.dst()).unwrap()
    })
}

/// A segment whose first byte is the peer's number `seq`, counted from its SYN, and that acknowledges `ack` bytes and our SYN.
fn segment(flags: Flags, seq: u32, ack: u32) -> tcp::Repr {
    tcp::Repr {
        src_port: 80,
        dst_port: 4000,
        seq: IRS + seq,
        ack: ISS + 1 + ack,
        flags: flags | Flags::ACK,
        window: 1000,
        urgent: 0,
        options: Options::default(),
    }
}

fn syn_ack(proxy_mss: Option<u16>, ack: u32) -> tcp::Repr {
    let options = Options { mss: Some(1460), window_scale: Some(9), proxy_mss, ..Options::default() };
    tcp::Repr { options, ..segment(Flags::SYN, 0, ack) }
}

fn give(connection: &mut Connection, segment: &tcp::Repr, len: usize) -> Result<(), Discard> {
    connection.handle_segment(NOW, Ecn::NotEct, segment, &vec![7; len])
}

/// RFC 7413 (4.2.2): a server may answer before the handshake is over. The window that the SYN told holds at once, so what comes right
/// behind the SYN-ACK does not wait for our acknowledgement of that.
#[test]
fn data_right_behind_the_answer_count() {
    for proxy_mss in [None, Some(9000)] {
        let mut connection = calling(proxy_mss, 0);
        give(&mut connection, &syn_ack(proxy_mss, 0), 0).unwrap();
        give(&mut connection, &segment(Flags::PSH, 1, 0), 20_000).unwrap();
        give(&mut connection, &segment(Flags::FIN, 20_001, 0), 10_000).unwrap();
        assert_eq!((connection.readable(), connection.peer_finished()), (30_000, true), "{proxy_mss:?}");
        let answer = sent(&mut connection).unwrap();
        assert_eq!((answer.ack, answer.flags), (IRS + 30_002, Flags::ACK));
        assert!(sent(&mut connection).is_none() && connection.statistics().duplicates_received == 0);
    }
}

/// RFC 7323 (2.2): no more counts than the SYN has let the peer send.
#[test]
fn data_beyond_the_window_of_the_syn_do_not_count() {
    // Nor of a SYN that only a proxy would have read otherwise.
    for proxy_mss in [None, Some(9000)] {
        let mut connection = calling(proxy_mss, 0);
        give(&mut connection, &syn_ack(None, 0), 0).unwrap();
        give(&mut connection, &segment(Flags::PSH, 1, 0), 65_000).unwrap();
        give(&mut connection, &segment(Flags::PSH, 65_001, 0), 65_000).unwrap();
        assert_eq!(connection.readable(), 65_535, "{proxy_mss:?}");
    }
}

/// RFC 9293 (3.10.7.3, fifth): what overtook the SYN-ACK has to be sent again. From a proxy it waits for the SYN-ACK, in whatever order
/// it came.
#[test]
fn data_before_the_answer_wait_for_it() {
    for is_proxy in [true, false] {
        let mut connection = calling(Some(9000), 300);
        give(&mut connection, &segment(Flags::FIN, 9001, 300), 5000).unwrap();
        give(&mut connection, &segment(Flags::PSH, 1, 300), 9000).unwrap();
        assert_eq!((connection.state(), connection.readable()), (State::SynSent, 0));
        assert!(sent(&mut connection).is_none());
        give(&mut connection, &syn_ack(is_proxy.then_some(9000), 300), 0).unwrap();
        let (came, state) = if is_proxy { (14_000, State::CloseWait) } else { (0, State::Established) };
        assert_eq!((connection.readable(), connection.state()), (came, state));
        assert_eq!((connection.unacknowledged(), connection.acknowledged()), (0, 300));
        let last = core::iter::from_fn(|| sent(&mut connection)).last().unwrap();
        assert_eq!(last.ack, IRS + if is_proxy { 14_002 } else { 1 });
    }
}

/// RFC 9293 (3.10.7.3, first and fifth): nobody fills the memory before the connection is there, nor comes in with what it cannot know.
#[test]
fn little_waits_for_the_answer() {
    let mut connection = calling(Some(9000), 300);
    let before = connection.memory();
    let kept =
        (0..100).filter(|at| give(&mut connection, &segment(Flags::PSH, 1 + at * 9000, 300), 9000).is_ok());
    assert!((20..30).contains(&kept.count()));
    assert!((200_000..300_000).contains(&(connection.memory() - before)));
    let far = segment(Flags::PSH, 1, 301);
    assert_eq!(give(&mut connection, &far, 9000), Err(Discard::BadAck(far.ack)));
    assert_eq!(sent(&mut connection).unwrap().flags, Flags::RST);
    // Acknowledgements without data say nothing that the SYN-ACK does not.
    assert_eq!(give(&mut connection, &segment(Flags::ACK, 1, 300), 0), Err(Discard::NoAck));
    give(&mut connection, &segment(Flags::RST, 0, 300), 0).unwrap();
    assert_eq!(connection.failure(), Some(Failure::Refused));
    assert!(connection.memory() < before + 1000, "what waited has gone");
    let mut host = calling(None, 0);
    assert_eq!(give(&mut host, &segment(Flags::PSH, 1, 0), 1000), Err(Discard::NoAck));
}

/// RFC 6298 (5.4): new data do not put off for ever what is lost, where nothing has been measured; here the answer to a SYN, which a proxy
/// does not wait for.
#[test]
fn an_answer_that_was_lost_comes_again_while_new_data_leave() {
    let mut config = TcpConfig { proxy_mss: Some(9000), ..TcpConfig::preset("proxy-link").unwrap() };
    config.rto.max_backoff = core::num::NonZeroU32::new(4);
    let (rto, patience) = (config.rto.initial, config.limits.syn_retries);
    let ends: [SocketAddr; 2] = ["10.0.0.1:4000", "10.0.0.2:80"].map(|it| it.parse().unwrap());
    let seeds = Seeds { initial_sequence: ISS, timestamp_offset: 0 };
    // Probes of the tail need it.
    let mut syn = tcp::Repr { flags: Flags::SYN, ..syn_ack(Some(9000), 0) };
    syn.options.sack_permitted = true;
    let mut connection = Connection::accept(NOW, Arc::new(config), ends[0], ends[1], seeds, &syn);
    let (mut now, mut answers, mut data) = (NOW, Vec::new(), 0);
    while connection.state() != State::Closed {
        // Less than a window.
        let _ = connection.write(&[5; 10]);
        let mut packet = Packet::default();
        while connection.poll_transmit(now, &mut packet) {
            let view = ip::View::parse(&packet).unwrap();
            match tcp::View::parse(view.payload()).unwrap().flags().has(Flags::SYN) {
                true => answers.push(now),
                false => data += 1,
            }
        }
        now += Duration::from_millis(100);
        connection.handle_timeout(now);
        assert!(now < NOW + Duration::from_secs(1000), "{answers:?}");
    }
    assert_eq!(answers.len(), 1 + patience as usize);
    let waits = [1, 2, 3, 4].map(|at| answers[at].saturating_since(answers[at - 1]));
    assert_eq!(waits, [1, 2, 4, 4].map(|times| rto.saturating_mul(times)));
    assert!(data > 100);
}

/// RFC 9293 (3.4): data on a SYN are allowed, and dropped by who does not expect them: only the first SYN to a proxy takes some, as many as
/// the path's packets have room for.
#[test]
fn only_the_first_syn_to_a_proxy_takes_data() {
    for proxy_mss in [None, Some(9000)] {
        let mut connection = called(proxy_mss, 20_000);
        let (mut now, mut packet) = (NOW, Packet::default());
        for first in [true, false] {
            packet = Packet::default();
            assert!(connection.poll_transmit(now, &mut packet));
            let view = ip::View::parse(&packet).unwrap();
            let segment = tcp::View::parse(view.payload()).unwrap();
            assert_eq!(segment.flags(), Flags::SYN);
            assert_eq!(
                !segment.payload().is_empty(),
                first && proxy_mss.is_some(),
                "{proxy_mss:?}, first {first}"
            );
            assert!(packet.len() <= 1500, "a SYN of {} bytes does not pass", packet.len());
            now = connection.poll_timeout().unwrap();
            connection.handle_timeout(now);
        }
        drop(packet);
    }
}

/// RFC 1122 (4.2.3.5): a call has as many SYNs as it is given, however long its link takes none of them.
#[test]
fn a_call_waits_for_a_blocked_link() {
    let mut connection = calling(None, 0);
    let mut now = NOW;
    for _ in 0..3 {
        now = connection.poll_timeout().expect("a timer");
        connection.handle_timeout(now);
    }
    assert_eq!((connection.state(), connection.failure()), (State::SynSent, None));
    assert!(connection.poll_transmit(now, &mut Packet::default()), "the SYN again");
}

/// RFC 3135 (2.2): end to end a proxy hears when the first bytes, which went with the SYN, have been acknowledged.
#[test]
fn the_acknowledgement_of_a_syns_data_is_told() {
    for acknowledged in [0, 700] {
        let mut connection = calling(Some(9000), 700);
        connection.relay_acknowledgements();
        give(&mut connection, &syn_ack(Some(9000), acknowledged), 0).unwrap();
        let events: Vec<_> = core::iter::from_fn(|| connection.poll_event()).collect();
        assert_eq!(events.contains(&Event::Acknowledged), acknowledged > 0, "{events:?}");
    }
}
