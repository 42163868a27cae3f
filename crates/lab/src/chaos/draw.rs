//! Scenarios drawn from a seed: any topology, channel, protocol and traffic that the lab has, together.
//!
//! What is drawn is bad, but not for ever: frames that are lost by chance alone are lost until [`CALM`], a rate of zero and a path that drops large
//! packets end before it, and blockages leave more time open than blocked. So all that ends has to arrive.

use core::fmt::Write as _;

use base::Rng;

/// Seconds after which nothing is lost but by blockages and queues.
const CALM: u64 = 60;
/// Seconds after which a run ends that is stuck: hundreds of the longest time-outs that TCP has, since a line that is
/// blocked a third of the time takes one after the other.
const END: u64 = 40_000;
/// Time-outs in a row that a connection takes: more than fit into a run. A line that is blocked that often makes any TCP give up
/// that counts to 15, which is no fault.
const PATIENCE: u64 = 1000;

/// The text of the scenario that belongs to a seed. It may be refused: not everything goes with everything.
pub(super) fn scenario(seed: u64) -> String {
    let mut draw = Draw {
        rng: Rng::named(seed, "chaos"),
        text: String::new(),
        is_ipv6: false,
        has_frames: false,
        slowest: u64::MAX,
    };
    draw.head(seed);
    let pairs = match draw.rng.below(100) {
        0..30 => draw.one_link(),
        30..45 => draw.chain(),
        45..60 => draw.dumbbell(),
        60..78 => draw.tunnel(),
        78..85 => draw.tunnel_of_paths(),
        _ => draw.hub(),
    };
    let flows = 1 + draw.rng.below(4);
    for number in 0..flows {
        let place = draw.rng.below(pairs.len() as u64) as usize;
        let (from, to) = &pairs[place];
        let (from, to) = if draw.rng.chance(0.7) { (from, to) } else { (to, from) };
        draw.traffic(number, from, to);
    }
    draw.text
}

/// Hosts between which there is traffic.
type Pairs = Vec<(String, String)>;

struct Draw {
    rng: Rng,
    text: String,
    is_ipv6: bool,
    /// Whether the link that is drawn has a protocol or a proxy, so that nobody is told of a packet that was too long.
    has_frames: bool,
    /// The lowest rate that any bad link has for long, in kbit/s.
    slowest: u64,
}

/// Whether a protocol goes over several lines.
fn knows_lines(protocol: &str) -> bool {
    ["coded", "cotmll"].iter().any(|name| protocol.contains(name)) && !protocol.contains("thesis")
}

impl Draw {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text += line.as_ref();
        self.text.push('\n');
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.rng.below(all.len() as u64) as usize]
    }

    /// A number between two, each order of magnitude as likely as another.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.rng.unit())
    }

    fn whole(&mut self, low: f64, high: f64) -> u64 {
        self.between(low, high).round() as u64
    }

    fn millis(&mut self, low: f64, high: f64) -> String {
        format!("\"{} us\"", (1000.0 * self.between(low, high)).round())
    }

    fn head(&mut self, seed: u64) {
        self.line(format!("name = \"chaos {seed}\"\nseed = {seed}\nduration = \"{END} s\""));
        self.is_ipv6 = self.rng.chance(0.2);
        if self.is_ipv6 {
            self.line("network = \"ipv6\"");
        }
        self.line("[tcp]");
        let preset = self.pick(&["linux", "linux", "rfc", "reference"]);
        self.line(format!("preset = \"{preset}\""));
        if self.rng.chance(0.5) {
            let name = self.pick(&[
                "reno",
                "cubic",
                "bbr",
                "vegas",
                "westwood-plus",
                "westwood-ere",
                "fast",
                "hybla",
            ]);
            self.line(format!("congestion = \"{name}\""));
        }
        self.line(format!("limits = {{ syn-retries = {PATIENCE}, data-retries = {PATIENCE} }}"));
        if self.rng.chance(0.3) {
            let name = self.pick(&["reno", "newreno", "sack", "fack", "rack"]);
            self.line(format!("recovery = \"{name}\""));
        }
        if self.rng.chance(0.2) {
            self.line("pacing = true");
        }
        if self.rng.chance(0.15) {
            self.line("timestamps = false");
        }
        if self.rng.chance(0.15) {
            let name = self.pick(&["on", "off", "after-slow-start", "quick-acks"]);
            self.line(format!("acknowledgements = \"{name}\""));
        }
        if self.rng.chance(0.2) {
            let bytes = self.whole(8.0, 4096.0);
            self.line(format!("window.receive-buffer = \"{bytes} KiB\""));
        }
    }

    fn one_link(&mut self) -> Pairs {
        self.bad_link("sky", ["a", "b"], true);
        vec![("a".to_owned(), "b".to_owned())]
    }

    /// Hosts at the ends of two good wires, with one or two bad links between.
    fn chain(&mut self) -> Pairs {
        self.wire("lan-1", ["a", "r1"]);
        if self.rng.chance(0.5) {
            self.bad_link("sky", ["r1", "r2"], true);
        } else {
            self.bad_link("sky-1", ["r1", "mid"], true);
            self.bad_link("sky-2", ["mid", "r2"], true);
        }
        self.wire("lan-2", ["r2", "b"]);
        vec![("a".to_owned(), "b".to_owned())]
    }

    /// Several hosts on each side of one link.
    fn dumbbell(&mut self) -> Pairs {
        let count = 2 + self.rng.below(3);
        self.bad_link("neck", ["left", "right"], true);
        let mut pairs = Vec::new();
        for number in 1..=count {
            self.wire(&format!("in-{number}"), [&format!("s{number}"), "left"]);
            self.wire(&format!("out-{number}"), ["right", &format!("d{number}")]);
            pairs.push((format!("s{number}"), format!("d{number}")));
        }
        pairs
    }

    /// Two gateways over a path, perhaps with others' traffic on it.
    fn tunnel(&mut self) -> Pairs {
        self.wire("lan-1", ["a", "west"]);
        self.wire("lan-2", ["east", "b"]);
        let mut pairs = vec![("a".to_owned(), "b".to_owned())];
        if self.rng.chance(0.3) {
            self.bad_link("wan", ["west", "mid"], false);
            self.wire("metro", ["mid", "east"]);
            self.wire("beside-1", ["c", "west"]);
            self.wire("beside-2", ["mid", "d"]);
            pairs.push(("c".to_owned(), "d".to_owned()));
        } else {
            self.bad_link("wan", ["west", "east"], false);
        }
        let restarts = self.rng.chance(0.3);
        let protocol = self.rng.chance(0.5).then(|| self.protocol());
        let rate = self.rng.chance(0.2).then(|| self.configured_rate());
        self.gateways("gateways", ["west", "east"], (protocol, rate), restarts);
        self.restarts(restarts);
        pairs
    }

    /// Two gateways over several paths, with routers on some of them.
    fn tunnel_of_paths(&mut self) -> Pairs {
        self.wire("lan-1", ["a", "west"]);
        self.wire("lan-2", ["east", "b"]);
        let count = 2 + self.rng.below(2);
        for number in 1..=count {
            if self.rng.chance(0.3) {
                self.bad_link(&format!("wan-{number}"), [&format!("mid-{number}"), "west"], false);
                self.wire(&format!("metro-{number}"), [&format!("mid-{number}"), "east"]);
            } else {
                self.bad_link(&format!("wan-{number}"), ["east", "west"], false);
            }
        }
        let restarts = self.rng.chance(0.3);
        let protocol = self.rng.chance(0.5).then(|| self.protocol_of_lines());
        self.gateways("gateways", ["west", "east"], (protocol, None), restarts);
        for number in 1..=count {
            self.line(format!("[tunnel.gateways.path.wan-{number}]"));
            if number > 1 {
                self.usage();
            }
            if self.rng.chance(0.2) {
                let rate = self.configured_rate();
                self.line(format!("rate = {rate}"));
            }
        }
        self.restarts(restarts);
        vec![("a".to_owned(), "b".to_owned())]
    }

    fn restarts(&mut self, restarts: bool) {
        if restarts {
            for gateway in [&["west"][..], &["east"], &["west", "east"]][self.rng.below(3) as usize] {
                let at = self.whole(1.0, 50.0);
                self.line(format!("[gateway.{gateway}]\nrestarts = [\"{at} s\", \"{} s\"]", at + 7));
            }
        }
    }

    /// Whoever says ten times too much drowns the line in what the protocol fills it with.
    fn configured_rate(&mut self) -> String {
        let rate = self.whole(self.slowest as f64 / 4.0, self.slowest as f64 * 4.0);
        format!("\"{rate} kbit/s\"")
    }

    /// A hub whose terminals have lines of their own behind a carrier that they share.
    fn hub(&mut self) -> Pairs {
        let count = 2 + self.rng.below(3);
        self.bad_link("carrier", ["hub", "sky"], false);
        let mut pairs = Vec::new();
        for number in 1..=count {
            let (terminal, server, host) = (format!("t{number}"), format!("s{number}"), format!("h{number}"));
            self.wire(&format!("line-{number}"), ["sky", &terminal]);
            self.wire(&format!("boat-{number}"), [&terminal, &host]);
            self.wire(&format!("rack-{number}"), ["hub", &server]);
            let protocol = self.rng.chance(0.5).then(|| self.protocol());
            let rate = self.rng.chance(0.2).then(|| self.configured_rate());
            self.gateways(&format!("to-{number}"), [&terminal, "hub"], (protocol, rate), false);
            if self.rng.chance(0.3) {
                let weight = 1 + self.rng.below(8);
                self.line(format!("weight = {weight}"));
            }
            pairs.push((server, host));
        }
        if self.rng.chance(0.4) {
            let rate = self.whole(200.0, 50_000.0);
            self.line(format!("[share.hub]\nrate = \"{rate} kbit/s\""));
        }
        pairs
    }

    fn wire(&mut self, name: &str, [one, other]: [&str; 2]) {
        let rate = self.pick(&["10 Mbit/s", "100 Mbit/s", "1 Gbit/s"]);
        let delay = self.millis(0.05, 5.0);
        self.line(format!(
            "[link.{name}]\nends = [\"{one}\", \"{other}\"]\nchannel = {{ rate = \"{rate}\", delay = {delay} }}"
        ));
    }

    /// A tunnel; `lasting`: what a gateway forgets that starts anew breaks no connection.
    fn gateways(
        &mut self,
        name: &str,
        [one, other]: [&str; 2],
        (protocol, rate): (Option<String>, Option<String>),
        lasting: bool,
    ) {
        self.line(format!("[tunnel.{name}]\nends = [\"{one}\", \"{other}\"]"));
        if let Some(protocol) = protocol {
            self.line(format!("link.protocol = {protocol}"));
        }
        if self.rng.chance(0.2) {
            self.line("link.sparse-flows = true");
        }
        if let Some(rate) = rate {
            self.line(format!("link.rate = {rate}"));
        }
        if self.rng.chance(0.2) {
            self.line("pep.enabled = false");
        } else if lasting {
            self.line("pep.ack = \"end-to-end\"");
        }
        if self.rng.chance(0.3) {
            let mtu = 1280 + self.rng.below(200);
            self.line(format!("mtu = {mtu}"));
        }
    }

    /// A link that is the reason for all this; `has_protocol`: there may be one.
    fn bad_link(&mut self, name: &str, [one, other]: [&str; 2], has_protocol: bool) {
        self.line(format!("[link.{name}]\nends = [\"{one}\", \"{other}\"]"));
        let mut has_paths = false;
        self.has_frames = false;
        if has_protocol && self.rng.chance(0.75) {
            self.has_frames = true;
            let protocol = self.protocol();
            self.line(format!("protocol = {protocol}"));
            has_paths = knows_lines(&protocol) && self.rng.chance(0.4);
            if self.rng.chance(0.15) {
                self.line("once-dscp = [46]\ninteractive-dscp = [18]");
            }
            if self.rng.chance(0.1) {
                self.line("sparse-flows = true");
            }
            if !has_paths && self.rng.chance(0.05) {
                self.line("framing = \"efl\"");
            }
            // The thesis' COTMLL never rests: with so much capacity on demand, control frames without end.
            if !has_paths && self.rng.chance(0.08) && !protocol.contains("thesis") {
                let kind =
                    self.pick(&["cra = \"20 kbit/s\", vbdc = true", "rbdc = \"64 kbit/s\"", "vbdc = true"]);
                self.line(format!("dama = {{ {kind} }}"));
            }
        }
        if has_protocol && self.rng.chance(0.3) {
            self.has_frames = true;
            self.line("pep = {}");
            if self.rng.chance(0.3) {
                let end = self.pick(&["first", "second"]);
                self.line(format!("pep-at = \"{end}\""));
            }
        }
        if self.rng.chance(0.6) {
            let queue = match self.rng.below(5) {
                0 => format!("drop-tail = {{ packets = {} }}", self.whole(3.0, 500.0)),
                1 => format!("drop-tail = {{ time = \"{} ms\" }}", self.whole(50.0, 2000.0)),
                2 => format!(
                    "drop-tail = {{ bytes = \"{} kB\", when-full = \"drop-random\" }}",
                    self.whole(5.0, 500.0)
                ),
                3 => "red = {}".to_owned(),
                _ => "fq-codel = {}".to_owned(),
            };
            self.line(format!("queue = {{ {queue} }}"));
        }
        self.line(format!("[link.{name}.channel]"));
        self.channel();
        if has_paths {
            (0..1 + self.rng.below(3)).for_each(|number| self.further_path(name, number));
        }
    }

    /// One more way over a link.
    fn further_path(&mut self, link: &str, number: u64) {
        self.line(format!("[link.{link}.path.p{number}]"));
        self.usage();
        self.line(format!("[link.{link}.path.p{number}.channel]"));
        self.channel();
    }

    /// What one path beside others is used for.
    fn usage(&mut self) {
        match self.rng.below(6) {
            0 => self.line("metered = true"),
            1 => self.line("backup = true"),
            2 => {
                let classes = self.pick(&[
                    "\"reliable\"",
                    "\"once\", \"interactive\"",
                    "\"interactive\", \"reliable\"",
                ]);
                self.line(format!("classes = [{classes}]"));
            }
            _ => {}
        }
    }

    /// One that knows several lines.
    fn protocol_of_lines(&mut self) -> String {
        loop {
            let protocol = self.protocol();
            if knows_lines(&protocol) {
                return protocol;
            }
        }
    }

    fn protocol(&mut self) -> String {
        let order = self.pick(&["\"flow\"", "\"flow\"", "true", "false"]);
        let window = self.whole(8.0, 4000.0);
        let wide = match self.rng.chance(0.3) {
            true => format!("ordered = {order}, window = {window}"),
            false => format!("ordered = {order}"),
        };
        match self.rng.below(10) {
            0 => "\"plain\"".to_owned(),
            1 => "\"cotmll\"".to_owned(),
            2 => format!("{{ cotmll = {{ {wide} }} }}"),
            3 => "\"cotmll-thesis\"".to_owned(),
            4 => format!("{{ cotmll-thesis = {{ window = {} }} }}", self.whole(4.0, 512.0)),
            5 => "\"slacp\"".to_owned(),
            6 => format!("{{ slacp = {{ max-retransmissions = {} }} }}", self.rng.below(4)),
            7 => "\"harq\"".to_owned(),
            8 => "\"coded\"".to_owned(),
            _ => format!("{{ coded = {{ {wide} }} }}"),
        }
    }

    fn channel(&mut self) {
        let rate = self.whole(64.0, 20_000.0);
        let delay = self.millis(1.0, 600.0);
        self.line(format!("rate = \"{rate} kbit/s\"\ndelay = {delay}"));
        let mut slower = rate;
        if self.rng.chance(0.3) {
            slower = self.whole((rate as f64 / 20.0).max(16.0), rate as f64);
            self.line(format!("up-rate = \"{slower} kbit/s\""));
        }
        self.slowest = self.slowest.min(slower);
        let errors = self.errors(slower, true);
        self.line(format!("errors = {errors}"));
        if self.rng.chance(0.3) {
            let errors = self.errors(slower, true);
            self.line(format!("up-errors = {errors}"));
        }
        if self.rng.chance(0.15) {
            let changed = self.whole((rate as f64 / 10.0).max(32.0), 2.0 * rate as f64);
            let pause = self.rng.chance(0.5);
            let middle = if pause { "0 bit/s".to_owned() } else { format!("{changed} kbit/s") };
            self.line(format!(
                "rate-changes = [{{ at = \"20 s\", rate = \"{middle}\" }}, {{ at = \"40 s\", rate = \"{rate} kbit/s\" }}]"
            ));
        }
        self.path(rate);
    }

    fn path(&mut self, rate: u64) {
        if self.rng.chance(0.15) {
            let (delay, over) = (self.millis(1.0, 600.0), self.rng.chance(0.5));
            let over = if over { ", over = \"10 s\"" } else { "" };
            self.line(format!("delay-changes = [{{ at = \"15 s\", delay = {delay}{over} }}]"));
            if self.rng.chance(0.3) {
                self.line("overtaking = true");
            }
        }
        if self.rng.chance(0.15) {
            let time = self.millis(0.5, 80.0);
            let jitter = match self.rng.chance(0.5) {
                true => format!("in-order = {{ up-to = {time} }}"),
                false => format!("overtaking = {{ probability = 0.1, from = \"100 us\", to = {time} }}"),
            };
            self.line(format!("jitter = {{ {jitter} }}"));
        }
        if self.rng.chance(0.15) {
            // IPv6 is not carried where 1280 bytes do not pass (RFC 8200, 5).
            let least = if self.is_ipv6 { 1280 } else { 600 };
            let bytes = least + self.rng.below(1500 - least);
            let says = self.rng.chance(0.5) && !self.has_frames;
            // TCP that nobody tells waits twice as long each time, and gives up in the end if the line is bad besides.
            self.line(format!(
                "largest-packet = {{ bytes = {bytes}, from = \"5 s\", until = \"15 s\", says = {says} }}"
            ));
        }
        if self.rng.chance(0.1) {
            let (rate, burst) =
                (self.whole(rate as f64 / 2.0, 2.0 * rate as f64).max(32), self.whole(6.0, 200.0));
            self.slowest = self.slowest.min(rate);
            self.line(format!("policer = {{ rate = \"{rate} kbit/s\", burst = \"{burst} kB\" }}"));
        }
    }

    /// Errors of one kind, or of several if that is `nested`. Between two blockages a line of `rate` kbit/s is open for some packets, or none
    /// would ever come.
    fn errors(&mut self, rate: u64, nested: bool) -> String {
        match self.rng.below(if nested { 10 } else { 8 }) {
            0 | 1 => {
                let probability = self.between(0.001, 0.4);
                format!(
                    "{{ erasure = {{ probability = {probability:.4}, changes = [{{ at = \"{CALM} s\", probability = 0.0 }}] }} }}"
                )
            }
            2 | 3 => {
                let f = 0.02 + 0.38 * self.rng.unit();
                // Open for ten packets of 1500 bytes on average.
                let shortest = (120_000.0 / rate as f64 * f / (1.0 - f)).clamp(10.0, 1400.0);
                let d = self.millis(shortest, 1500.0);
                format!("{{ gilbert-elliott = {{ f = {f:.3}, d = {d} }} }}")
            }
            4 => {
                let (open, blocked, first) =
                    (self.millis(2000.0, 20_000.0), self.millis(20.0, 1900.0), self.millis(10.0, 10_000.0));
                format!("{{ periodic = {{ open = {open}, blocked = {blocked}, first = {first} }} }}")
            }
            5 => {
                "{ bursts = { interval = [\"3 s\", \"15 s\"], length = [\"50 ms\", \"400 ms\"] } }".to_owned()
            }
            6 => format!("{{ bit-errors = {{ ber = {:e} }} }}", self.between(1e-9, 2e-6)),
            7 => {
                let mut lost: Vec<u64> = (0..6).map(|_| 1 + self.rng.below(60)).collect();
                lost.sort_unstable();
                lost.dedup();
                format!("{{ scripted = {{ lost = {lost:?} }} }}")
            }
            8 => "\"none\"".to_owned(),
            _ => {
                let (one, other) = (self.errors(rate, false), self.errors(rate, false));
                format!("{{ any = [{one}, {other}] }}")
            }
        }
    }

    fn traffic(&mut self, number: u64, from: &str, to: &str) {
        let ends = format!("from = \"{from}\"\nto = \"{to}\"");
        let start = self.rng.below(20);
        let mut text = String::new();
        match self.rng.below(100) {
            0..55 => {
                let (size, connections) = (self.whole(1.0, 400.0), self.whole(1.0, 5.0));
                let _ = writeln!(
                    text,
                    "[traffic.flow-{number}.bulk]\n{ends}\nsize = \"{size} kB\"\nconnections = {connections}"
                );
                if self.rng.chance(0.3) {
                    let _ = writeln!(text, "opened-by = \"sender\"");
                }
                if self.rng.chance(0.3) {
                    let _ = writeln!(text, "stagger = \"300 ms\"\njitter = \"100 ms\"");
                }
            }
            55..80 => {
                let (rate, record) = (self.whole(4.0, 200.0), 40 + self.rng.below(1300));
                let transport = self.pick(&["tcp", "udp"]);
                let seconds = 5 + self.rng.below(60);
                let _ = writeln!(
                    text,
                    "[traffic.flow-{number}.rate]\n{ends}\nrate = \"{rate} kbit/s\"\nrecord = \"{record} B\"\n\
                     transport = \"{transport}\"\nduration = \"{seconds} s\""
                );
                if transport == "udp" && self.rng.chance(0.4) {
                    let dscp = self.pick(&["46", "18", "0"]);
                    let _ = writeln!(text, "dscp = {dscp}");
                }
            }
            _ => {
                let (reply, count) = (self.whole(100.0, 60_000.0), 1 + self.rng.below(30));
                let pace = self.pick(&[
                    "think = \"200 ms\"",
                    "interval = \"500 ms\"",
                    "think = \"2 s\"\nexponential = true",
                ]);
                let concurrency = 1 + self.rng.below(4);
                let _ = writeln!(
                    text,
                    "[traffic.flow-{number}.transactions]\n{ends}\nrequest = \"300 B\"\nreply = \"{reply} B\"\ncount = {count}\n{pace}\n\
                     concurrency = {concurrency}"
                );
            }
        }
        let _ = writeln!(text, "start = \"{start} s\"");
        self.line(text.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::scenario;
    use crate::scenario::Suite;

    /// Most of what is drawn can be run, and a seed is always the same.
    #[test]
    fn most_draws_are_scenarios() {
        let mut refused = Vec::new();
        for seed in 0..400 {
            let text = scenario(seed);
            assert_eq!(text, scenario(seed));
            if let Err(error) = Suite::parse("chaos.toml", &text, Path::new(""), &[]) {
                refused.push(error.to_string());
            }
        }
        assert!(refused.len() < 160, "{} of 400: {refused:#?}", refused.len());
        // What is refused are combinations, not names.
        assert!(
            refused.iter().all(|error| !error.contains("unknown") && !error.contains("missing")),
            "{refused:#?}"
        );
    }
}
