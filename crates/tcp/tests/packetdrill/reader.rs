//! Of the reader and the runner themselves: what is not in the language, scripts that must fail, and garbage.

use base::Duration;
use packetdrill::Script;
use proptest::prelude::*;

use super::host::VirtualHost;

/// What is wrong in a script, or in what it finds.
fn complaint(text: &str) -> String {
    crate::run(text).expect_err(text)
}

/// Line 6 is the first of a script's own.
fn with_connection(rest: &str) -> String {
    format!(
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 setsockopt(3, IPPROTO_TCP, TCP_CONGESTION, \"reno\", 4) = 0\n\
         +0 bind(3, ..., ...) = 0 +0 listen(3, 1) = 0 +0 < S 0:0(0) win 9000 <mss 1000>\n\
         +0 > S. 0:0(0) ack 1 <mss 1460>\n+0.1 < . 1:1(0) ack 1 win 9000 +0 accept(3, ..., ...) = 4\n{rest}"
    )
}

#[test]
fn what_is_not_in_the_language_is_told_with_its_place() {
    for (text, place, words) in [
        ("", "1:1", "the end here; allowed is an event"),
        ("0 sockt(...) = 3", "1:3", "unknown system call `sockt`; allowed are socket, bind"),
        ("0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "1:15", "allowed is SOCK_STREAM"),
        ("\n  `sysctl -w x=1`", "2:3", "--set recovery.scheme"),
        ("0 `true`", "1:3", "shell commands are not run"),
        (
            "--colour=red\n0 close(3) = 0",
            "1:1",
            "unknown option `--colour`; allowed are `--tolerance_usecs=4000`",
        ),
        ("--mtu=9\n0 close(3) = 0", "1:1", "allowed is 576 to 65535 bytes"),
        ("--kernel\n--set mss=1000\n0 close(3) = 0", "2:1", "the kernel takes no `--preset` and no `--set`"),
        ("0 close(3) = 0\n--mtu=1500", "2:1", "allowed is a time"),
        ("0.0.1 close(3) = 0", "1:4", "allowed is `<`, `>`, a system call or `%{`"),
        ("0 < S 0:1(0) win 1", "1:9", "0:1 is not 0 bytes; allowed is 0"),
        ("0 < X 0:0(0)", "1:5", "flags of FSRP.UEW"),
        ("0 < . 0:0(0)", "1:13", "the flag `.` without `ack`"),
        ("0 < S 0:0(0) ack 1", "1:14", "`ack` without the flag `.`"),
        ("0 < S 0:0(0) wim 1", "1:14", "allowed is `win`, `<` with options, or the next event"),
        ("0 < S 0:0(0) win 70000", "1:18", "65535 at most"),
        ("0 < S 0:0(0) <mss 1000,sackok>", "1:24", "allowed is mss, wscale, sackOK"),
        ("0 < S 0:0(0) <...>", "1:5", "for outbound packets"),
        ("0 > S 0:0(0) <TS val 1>", "1:23", "allowed is `ecr`"),
        (
            "0 > S 0:0(0) <mss 1,TS val 1 ecr 1,TS val 1 ecr 1,TS val 1 ecr 1,TS val 1 ecr 1>",
            "1:15",
            "40 fit",
        ),
        ("0 < [ecn] S 0:0(0)", "1:6", "noecn, ect0, ect1, ce, ect01"),
        ("0~0.2 < S 0:0(0)", "1:1", "only what the host sends"),
        ("+0~0.2 > S 0:0(0)", "1:4", "both ends of a range"),
        ("0.2~0.1 > S 0:0(0)", "1:5", "ends before it begins"),
        ("0...1 close(3) = 0", "1:7", "does not block"),
        ("0...1 > S 0:0(0)", "1:7", "allowed is a system call"),
        ("0.2 close(3) = 0\n0.1 close(3) = 0", "2:1", "time goes backward, from 200 ms to 100 ms"),
        ("0 close(3) = -1 EWHAT", "1:17", "allowed is EAGAIN"),
        ("0 setsockopt(3, SOL_SOCKET, SO_BROADCAST, [1], 4) = 0", "1:29", "allowed is SO_REUSEADDR"),
        ("0 setsockopt(3, SOL_TCP, TCP_MAXSEG, [9], 4) = 0", "1:39", "64 to 65495"),
        ("0 setsockopt(3, SOL_TCP, TCP_KEEPCNT, [3], 4) = 0", "1:40", "is 9 and cannot be changed"),
        ("0 %{ assert tcpi_cwnd == 1 }%", "1:13", "unknown name `tcpi_cwnd`; allowed are tcpi_state"),
        ("0 %{ print(1) }%", "1:6", "allowed is `assert`"),
        ("0 %{ assert 1 / 2 }%", "1:15", "allowed is an operator"),
        ("0 %{ assert 1 2 }%", "1:15", "allowed is an operator"),
        ("0 %{ assert 1", "1:5", "`%{` without `}%`"),
        ("/* 0", "1:1", "`/*` without `*/`"),
        ("0 write(4, \"a", "1:12", "without a second one"),
        ("0 write(4, ..., 99999999999) = 1", "1:17", "16777216 at most"),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = -1 EINVAL", "1:43", "allowed is its number"),
    ] {
        let message = complaint(text);
        assert!(message.starts_with(&format!("{place}: ")) && message.contains(words), "{text}\n  {message}");
    }
}

#[test]
fn settings_are_told_with_their_place() {
    for (text, place, words) in [
        ("--set mss=1000\n--set recovery.scheme=\"tahoe\"\n0 close(3) = 0", "2:1", "tahoe"),
        ("--preset=linux-7\n0 close(3) = 0", "1:1", "linux-7"),
        ("--set cwnd = 3\n0 close(3) = 0", "1:1", "unknown key `cwnd`"),
    ] {
        let message = complaint(text);
        assert!(message.starts_with(&format!("{place}: ")) && message.contains(words), "{text}\n  {message}");
    }
}

/// Each of these differs in one thing from what a host does.
#[test]
fn a_script_that_must_fail_fails_and_tells_where() {
    for (rest, place, words) in [
        ("+0 write(4, ..., 1000) = 1000 +0 > . 1:1001(1000) ack 1", "6:31", "flags differs"),
        ("+0 write(4, ..., 1000) = 1000\n+0 > P. 2:1002(1000) ack 1", "7:1", "sequence number differs"),
        ("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1000(999) ack 1", "7:1", "length differs"),
        ("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 2", "7:1", "acknowledgement differs"),
        ("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1 win 1", "7:1", "window differs"),
        ("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1 <nop>", "7:1", "options differs"),
        ("+0 write(4, ..., 1000) = 1000\n+0 > [ce] P. 1:1001(1000) ack 1", "7:1", "ECN differs"),
        ("+0 write(4, ..., 3000) = 3000\n+0 > P. 1:4001(4000) ack 1", "7:1", "length differs"),
        ("+0 write(4, ..., 1000) = 999", "6:1", "expected = 999\n  got      = 1000"),
        ("+0 write(4, ..., 1000) = 1000", "6:1", "the script ends, and something was sent"),
        ("+0 > P. 1:1001(1000) ack 1", "6:1", "nothing was sent by 0.104000"),
        (
            "+0 %{ assert tcpi_snd_cwnd == 11, \"too few\" }%",
            "6:1",
            "6:7: assertion does not hold (too few): tcpi_snd_cwnd = 10",
        ),
        ("+0 read(4, ..., 1) = 1", "6:1", "the call blocks; it needs a time when it returns"),
        ("+0...0.1 read(4, ..., 1) = 1", "6:1", "the call still blocks"),
        (
            "+0...0.1 read(4, ..., 1) = 1\n+0.05 < P. 1:2(1) ack 1 win 9000",
            "7:1",
            "the call returns at 0.150000; expected at 0.200000",
        ),
        ("+0 write(7, ..., 1) = 1", "6:1", "no socket 7"),
        ("+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0", "6:1", "before `connect` or `listen`"),
        ("+0 getsockopt(4, SOL_SOCKET, SO_ERROR, [ECONNRESET], [4]) = 0", "6:1", "SO_ERROR is 0"),
    ] {
        let message = complaint(&with_connection(rest));
        assert!(message.starts_with(&format!("{place}: ")) && message.contains(words), "{rest}\n  {message}");
    }
}

/// A failure shows what was expected and what came, in the script's own notation and numbers, and what led to it.
#[test]
fn a_failure_shows_segments() {
    let text = with_connection(
        "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n+0.1 < . 1:1(0) ack 1001 win 0\n+0 > F. 1001:1001(0) ack 1",
    );
    let expected = "9:1: nothing was sent by 0.204000\n  expected > F. 1001:1001(0) ack 1\n  segments before it:\n    \
                    0.000000 < S 0:0(0) win 9000 <mss 1000>\n    0.000000 > S. 0:0(0) ack 1 win 65535 <mss 1460>\n    \
                    0.100000 < . 1:1(0) ack 1 win 9000\n    0.100000 > P. 1:1001(1000) ack 1 win 65535\n    \
                    0.200000 < . 1:1(0) ack 1001 win 0";
    assert_eq!(complaint(&text), expected);
}

/// A time may be off by 4 ms, as in packetdrill, or by what the script says, and by no more; too early is wrong too.
#[test]
fn the_tolerance_holds_both_ways() {
    let retransmission = |options: &str, time: &str| {
        let body = "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1";
        format!("{options}{}\n{time} > P. 1:1001(1000) ack 1", with_connection(body))
    };
    // Without selective acknowledgements there is no probe: the time-out comes 300 ms after the segment.
    for time in ["+0.3", "+0.3039", "+0.2961", "0.4", "+0.2~+0.4", "+0.303~+0.4", "*", "0.1~0.4", "0.3~0.397"]
    {
        assert_eq!(crate::run(&retransmission("", time)), Ok(()), "{time}");
    }
    for time in ["+0.3041", "0.405", "+0.305~+0.4"] {
        assert!(complaint(&retransmission("", time)).contains("time differs"), "{time}");
    }
    assert!(complaint(&retransmission("", "+0.2959")).contains("nothing was sent by"));
    assert_eq!(crate::run(&retransmission("--tolerance_usecs=10000\n", "+0.309")), Ok(()));
    assert!(complaint(&retransmission("--tolerance_usecs=0\n", "+0.300001")).contains("time differs"));
}

/// The peer's echo of a timestamp is one that the host really sent, and its own clock may be off by the tolerance alone.
#[test]
fn timestamps_are_the_scripts() {
    let text = |value: u32| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3 +0 bind(3, ..., ...) = 0 +0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 9000 <mss 1000,TS val 7 ecr 0>\n+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,TS val 50 ecr 7>\n\
             +0.1 < . 1:1(0) ack 1 win 9000 <nop,nop,TS val 8 ecr 50>\n+0 accept(3, ..., ...) = 4\n\
             +0 %{{ assert tcpi_rtt == 100000, tcpi_rtt }}%\n\
             +0 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1 <nop,nop,TS val {value} ecr 8>"
        )
    };
    for value in [150, 146, 154] {
        assert_eq!(crate::run(&text(value)), Ok(()), "{value}");
    }
    for value in [145, 155] {
        assert!(complaint(&text(value)).starts_with("8:1: options differs"), "{value}");
    }
}

/// Pieces that mutations put in.
const PIECES: [&str; 24] = [
    "",
    "0",
    "1",
    "+",
    "~",
    "...",
    "<",
    ">",
    "%{",
    "}%",
    "(",
    ")",
    ".",
    " ",
    "\n",
    "//",
    "/*",
    "99999999",
    "-1",
    "*",
    "ack",
    "<...>",
    "é",
    "--set mss=64\n",
];

proptest! {
    /// Nothing that somebody writes makes the reader panic.
    #[test]
    fn garbage_is_refused(text in "\\PC*") {
        let _ = Script::parse(&text);
    }

    /// No words of the language in any order make the reader panic.
    #[test]
    fn words_in_any_order_are_read_or_refused(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        let _ = Script::parse(&pieces.concat());
    }

    /// Scripts that were changed in a few places are refused, or run to an end.
    #[test]
    fn changed_scripts_come_to_an_end(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..8, prop::sample::select(&PIECES[..])), 1..4),
    ) {
        let all = crate::scripts("");
        let mut text: Vec<char> = which.get(&all).1.chars().collect();
        for (at, len, piece) in changes {
            let start = at.index(text.len() + 1);
            let end = (start + len).min(text.len());
            text.splice(start..end, piece.chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok(script) = Script::parse(&text) && let Ok(mut host) = VirtualHost::new(&script) {
            let _ = packetdrill::run(&script, &mut host, Duration::ZERO);
        }
    }
}
