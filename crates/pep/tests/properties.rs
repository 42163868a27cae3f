//! Whatever hosts and links do: what is delivered is a prefix of what was sent, the whole unless an end resets, and nothing
//! stays behind.

use crate::chain::{Chain, Setup, byte_at, stream};
use base::{Duration, Instant};
use longhaul_pep::{Acknowledgement, Answer, Config};
use proptest::prelude::*;
use tcp::TcpConfig;

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An end writes so many bytes.
    Write(bool, usize),
    /// An end has no more to say.
    Finish(bool),
    /// An end reads what comes, or not.
    Read(bool, bool),
    /// An end ends everything.
    Abort(bool),
    /// So many milliseconds pass.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (any::<bool>(), 1_usize..200_000).prop_map(|(client, len)| Step::Write(client, len)),
        1 => any::<bool>().prop_map(Step::Finish),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(client, reads)| Step::Read(client, reads)),
        1 => any::<bool>().prop_map(Step::Abort),
        6 => (1_u64..3000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..40)
}

fn setups() -> impl Strategy<Value = Setup> {
    let config = (any::<bool>(), 0_usize..3, prop_oneof![Just(256_u64 << 10), Just(4 << 10)]).prop_map(
        |(end_to_end, answer, backlog)| Config {
            ack: if end_to_end { Acknowledgement::EndToEnd } else { Acknowledgement::Local },
            answer: [Answer::Never, Answer::Known, Answer::Always][answer],
            backlog: base::units::Size(backlog),
            ..Config::default()
        },
    );
    let loss = prop_oneof![3 => Just(0.0), 2 => Just(0.02), 1 => Just(0.15)];
    let host = prop_oneof![Just("linux"), Just("reference"), Just("enhanced")];
    (config, 0_usize..3, loss, any::<u64>(), host).prop_map(|(config, which, loss, seed, host)| Setup {
        near: (which != 2).then(|| config.clone()),
        far: (which != 1).then_some(config),
        loss,
        seed,
        delay: Duration::from_millis(50),
        host: TcpConfig::preset(host)
            .unwrap()
            .with(|it| it.limits.keep_alive = Some(Duration::from_secs(600))),
        ..Setup::default()
    })
}

fn is_prefix(number: u64, read: &[u8], sent: usize) -> bool {
    read.len() <= sent && read.iter().enumerate().all(|(at, byte)| *byte == byte_at(number, at as u64))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streams_are_prefixes_and_nothing_stays(setup in setups(), steps in steps()) {
        let mut chain = Chain::new(&setup);
        chain.listen(80, &setup.host);
        let id = chain.connect(80, &setup.host);
        let data = [stream(1, 2_000_000), stream(2, 2_000_000)];
        let (mut written, mut done) = ([0_usize; 2], [false; 2]);
        let (mut aborted, mut clock) = (false, 0_u64);
        let finish_all = [Step::Read(true, true), Step::Read(false, true), Step::Wait(400_000), Step::Finish(true), Step::Finish(false)];
        for step in steps.into_iter().chain(finish_all) {
            let now = chain.now;
            let at_server = chain.server_saw().id;
            match step {
                Step::Write(client, len) => {
                    let which = usize::from(!client);
                    let end = (written[which] + len).min(data[which].len());
                    if done[which] || aborted { continue; }
                    let part = &data[which][written[which]..end];
                    let taken = match (client, at_server) {
                        (true, _) => chain.client.write(now, id, part),
                        (false, Some(id)) => chain.server.write(now, id, part),
                        (false, None) => Ok(0),
                    };
                    written[which] += taken.unwrap_or(0);
                }
                Step::Finish(client) => {
                    let _ = match (client, at_server) {
                        (true, _) => chain.client.finish(now, id),
                        (false, Some(id)) => chain.server.finish(now, id),
                        (false, None) => Ok(()),
                    };
                    done[usize::from(!client)] |= client || at_server.is_some();
                }
                Step::Read(true, reads) => chain.client_reads = reads,
                Step::Read(false, reads) => chain.server_reads = reads,
                Step::Abort(client) => {
                    // A reset that is lost before the caller was answered leaves it calling again, with or without a proxy.
                    if !client && chain.saw(id).connected_at.is_none() { continue; }
                    let _ = match (client, at_server) {
                        (true, _) => chain.client.abort(now, id),
                        (false, Some(id)) => chain.server.abort(now, id),
                        (false, None) => Ok(()),
                    };
                    aborted |= client || at_server.is_some();
                }
                Step::Wait(ms) => clock += ms,
            }
            chain.settle();
            let until = Duration::from_millis(clock).max(chain.now.saturating_since(Instant::ZERO));
            clock = clock.max(until.as_millis());
            chain.run(until, |_| false);
        }
        chain.run(Duration::from_secs(40_000), |_| false);
        let (client, server) = (chain.saw(id), chain.server_saw());
        prop_assert!(is_prefix(1, &server.read, written[0]), "{} of {}", server.read.len(), written[0]);
        prop_assert!(is_prefix(2, &client.read, written[1]), "{} of {}", client.read.len(), written[1]);
        if !aborted {
            prop_assert_eq!((client.failed, server.failed), (None, None));
            prop_assert_eq!((server.read.len(), client.read.len()), (written[0], written[1]));
            prop_assert!(server.finished && client.finished);
        }
        // Who sees an end sees all of it.
        prop_assert!(!server.finished || server.read.len() == written[0]);
        prop_assert!(!client.finished || client.read.len() == written[1]);
        chain.expect_no_connections();
    }
}
