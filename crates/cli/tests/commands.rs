//! The commands as a user meets them: output, exit codes, complaints.

mod requirements;
mod scratch;

use std::path::Path;
use std::process::{Command, Output};

use requirements::skipped;
use scratch::Scratch;

fn longhaul(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");
const SMALL: [&str; 4] = ["--set", "traffic.download.bulk.size=20 kB", "--seeds", "2"];

fn demo_file(scratch: &Scratch) -> String {
    let file = scratch.path("download.toml");
    std::fs::write(&file, DEMO).unwrap();
    file
}

#[test]
fn run_prints_a_table_and_writes_a_report() {
    let scratch = Scratch::new("report");
    let (file, out) = (demo_file(&scratch), scratch.path("out"));
    let output = longhaul(&[&["run", &file, "--out", &out], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in [
        "TCP over COTMLL",
        "intact",
        "x faster on the same channel realisations (median of 2 seeds",
        "T/C",
        "shorter than the 150 channel periods",
        "trace hash",
        &format!("report: {out}/report.html"),
    ] {
        assert!(table.contains(part), "no {part:?} in\n{table}");
    }
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.matches("<svg").count() >= 5 && page.contains("sent again"));
    assert!(page.contains("<th>T/C</th>") && page.contains("shorter than the 150 channel periods"));
    // Self-contained: nothing is fetched.
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("<link"));
    let resolved = std::fs::read_to_string(Path::new(&out).join("scenario-2.toml")).unwrap();
    assert!(resolved.contains("cotmll-thesis") && resolved.contains("window = 512"), "{resolved}");
}

#[test]
fn json_has_the_promised_names_and_repeats_exactly() {
    let scratch = Scratch::new("json");
    let file = demo_file(&scratch);
    let run = |jobs: &str| {
        let output = longhaul(&[&["run", &file, "--json", "--jobs", jobs], &SMALL[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let first = run("1");
    assert_eq!(first, run("2"));
    let value: serde_json::Value = serde_json::from_str(&first).unwrap();
    for name in ["scenario", "seed", "trace_hash", "runs", "report"] {
        assert!(value.get(name).is_some(), "no {name}");
    }
    assert_eq!(value["runs"].as_array().unwrap().len(), 10);
    for name in ["scheme", "seed", "bytes", "seconds", "goodput_bps", "bound_bps", "intact"] {
        assert!(value["runs"][0].get(name).is_some(), "no {name}");
    }
    let schemes = value["schemes"].as_array().unwrap();
    assert_eq!(schemes.len(), 5);
    for (scheme, runs) in schemes.iter().zip(value["runs"].as_array().unwrap().chunks(2)) {
        let mean = |name: &str| runs.iter().map(|run| run[name].as_f64().unwrap()).sum::<f64>() / 2.0;
        let close = |name: &str, to: f64| (scheme[name].as_f64().unwrap() / to - 1.0).abs() < 1e-9;
        assert!(close("mean_goodput_bps", mean("goodput_bps")), "{scheme}");
        // 256 kbit/s, blocked for 30 % of the time, 1 s on average.
        assert!(close("normalised_throughput", mean("goodput_bps") / 256e3), "{scheme}");
        assert!(close("throughput_per_capacity", mean("goodput_bps") / (256e3 * 0.7)), "{scheme}");
        let fewest =
            runs.iter().map(|run| run["seconds"].as_f64().unwrap() * 0.3).fold(f64::INFINITY, f64::min);
        assert!(close("channel_periods", fewest) && scheme["steady"] == false, "{scheme}");
        let interval = &scheme["goodput_interval"];
        assert_eq!(interval["n"], 2);
        assert!(interval["low"].as_f64() < interval["high"].as_f64(), "{scheme}");
    }
}

#[test]
fn a_wrong_scenario_is_exit_code_2_and_names_the_place() {
    let scratch = Scratch::new("wrong");
    let file = scratch.path("wrong.toml");
    std::fs::write(&file, DEMO.replace("256 kbit/s\"\ndelay", "256 kbps\"\ndelay")).unwrap();
    let output = longhaul(&["run", &file]);
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    let line = DEMO.lines().position(|line| line.starts_with("rate")).unwrap() + 1;
    assert!(complaint.contains(&format!("wrong.toml:{line}: rate = \"256 kbps\": ")), "{complaint}");
    assert!(complaint.contains("write a number and one of bit/s, kbit/s"), "{complaint}");

    let missing = longhaul(&["run", &scratch.path("missing.toml")]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("missing.toml: "));
    let set = longhaul(&["run", &file, "--set", "seed"]);
    assert_eq!(set.status.code(), Some(2));
    assert!(text(&set.stderr).contains("is not key=value"));
}

#[test]
fn reproduce_prints_cells_and_verdicts() {
    let scratch = Scratch::new("reproduce");
    let out = scratch.path("out");
    let arguments = ["reproduce", "peng", "--quick", "--figure", "4", "--seeds", "1", "--out", &out];
    let output = longhaul(&[&arguments[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!((value["paper"].as_str(), value["seed"].as_u64()), (Some("peng"), Some(1)));
    for name in ["table", "row", "paper", "ours", "p25", "p75", "n", "bound", "calibrated"] {
        assert!(value["cells"][0].get(name).is_some(), "no {name}");
    }
    for name in ["id", "claim", "paper", "ours", "verdict"] {
        assert!(value["verdicts"][0].get(name).is_some(), "no {name}");
    }
    for verdict in value["verdicts"].as_array().unwrap() {
        let verdict = verdict["verdict"].as_str().unwrap();
        assert!(["holds", "fails", "undecided"].contains(&verdict), "{verdict}");
    }
    // Again from what was kept, as a table.
    let table = text(&longhaul(&arguments).stdout);
    for part in ["peng-pages-get-faster", "2 claims: ", &format!("report: {out}/report.html")] {
        assert!(table.contains(part), "no {part:?} in\n{table}");
    }
    let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("<link"));
}

#[test]
fn an_unknown_paper_or_figure_is_exit_code_2_and_lists_what_there_is() {
    let paper = longhaul(&["reproduce", "nobody"]);
    assert_eq!(paper.status.code(), Some(2));
    assert_eq!(
        text(&paper.stderr),
        "longhaul: no paper \"nobody\"; there are peng, faulkner, kojo, casoni, lt-tcp, rate, paths, frontier\n"
    );
    let figure = longhaul(&["reproduce", "peng", "--figure", "9"]);
    assert_eq!(figure.status.code(), Some(2));
    assert!(
        text(&figure.stderr)
            .contains("no figure, table or experiment \"9\"; there are \"2a\", \"2b\", \"2c\", \"3\", "),
        "{}",
        text(&figure.stderr)
    );
}

#[test]
fn sweep_runs_a_scenario_over_its_keys() {
    let scratch = Scratch::new("sweep");
    let (file, out) = (demo_file(&scratch), scratch.path("out"));
    let delays = "link.satellite.channel.delay=10 ms,250 ms";
    let output = longhaul(&["sweep", &file, "--axis", delays, "--seeds", "2", "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = std::fs::read_to_string(Path::new(&out).join("measurements.csv")).unwrap();
    assert!(rows.starts_with("experiment,scheme,link.satellite.channel.delay_s,seed,"), "{rows}");
    for row in [",0.01,1,T,", ",0.25,2,T,"] {
        assert!(rows.contains(row), "no {row:?} in\n{rows}");
    }
    let runs = std::fs::read_to_string(Path::new(&out).join("runs.csv")).unwrap();
    let heading = runs.lines().next().unwrap();
    assert!(heading.starts_with("experiment,scheme,link.satellite.channel.delay_s,seed,flow,"), "{heading}");
    for column in [",seconds,", ",flow_goodput_bps,", ",received_bytes,", ",run_goodput_bps"] {
        assert!(heading.contains(column), "no {column} in {heading}");
    }
    // Five schemes, two delays, two seeds, and one flow.
    assert_eq!(runs.lines().count(), 1 + 5 * 2 * 2, "{runs}");
    assert!(runs.lines().skip(1).all(|row| row.split(',').count() == heading.split(',').count()), "{runs}");
    let shown = text(&output.stdout);
    let heading = "goodput, kbit/s, by link.satellite.channel.delay (mean and its 95 % interval)\n";
    let table = shown.split_once(heading).map_or_else(|| panic!("{shown}"), |(_, table)| table);
    assert!(table.starts_with("scheme") && table.lines().next().unwrap().ends_with("250 ms"), "{shown}");
    for file in ["goodput.svg", "goodput-paper.svg", "goodput.csv", "time-download.svg"] {
        assert!(Path::new(&out).join(file).is_file(), "no {file}");
    }
    let report = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    for word in ["paper</th>", "ours", "Where each claim holds"] {
        assert!(!report.contains(word), "{word}");
    }
    assert!(report.contains(">delay (ms)</text>") && report.contains(">goodput (kbit/s)</text>"));
    let wrong = longhaul(&["sweep", &file, "--axis", "link.satellite.channel.dlay=10 ms", "--out", &out]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("dlay"), "{}", text(&wrong.stderr));
    let shard = longhaul(&["sweep", &file, "--shard", "3/2"]);
    assert_eq!(shard.status.code(), Some(2));
    assert!(text(&shard.stderr).contains("as in 2/5"), "{}", text(&shard.stderr));
}

/// A log is of the scheme that was named, or of the first; a scheme that does not exist is refused with those that do.
#[test]
fn run_logs_the_events_of_one_scheme() {
    let scratch = Scratch::new("events");
    let (file, log) = (demo_file(&scratch), scratch.path("events.jsonl"));
    let logged = |scheme: &[&str]| {
        let output = longhaul(&[&["run", &file, "--log", &log], scheme, &SMALL[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = std::fs::read_to_string(&log).unwrap();
        assert!(lines.lines().count() > 100 && lines.lines().all(|line| line.starts_with("{\"at\":")));
        assert!(lines.contains("\"event\":\"segment\"") && lines.contains("\"event\":\"frame-sealed\""));
        (lines, text(&output.stdout).to_owned())
    };
    // Only COTMLL has trailers.
    let (first, printed) = logged(&[]);
    assert!(!first.contains("\"ack_count\"") && printed.contains("event log of TCP: "), "{printed}");
    assert!(logged(&["--log-scheme", "TCP over COTMLL"]).0.contains("\"ack_count\""));

    let output = longhaul(&["run", &file, "--log", &log, "--log-scheme", "UDP"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("allowed are TCP, TCP over COTMLL"), "{}", text(&output.stderr));
}

#[test]
fn a_capture_has_a_file_for_each_scheme() {
    let scratch = Scratch::new("captures");
    let (file, out) = (demo_file(&scratch), scratch.path("out"));
    for place in ["terminal", "satellite"] {
        let output = longhaul(&[&["run", &file, "--out", &out, "--pcap", place], &SMALL[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        for (scheme, slug) in [
            ("TCP", "1-tcp"),
            ("TCP over COTMLL", "2-tcp-over-cotmll"),
            ("TCP over SLACP", "3-tcp-over-slacp"),
            ("proxies over coded ARQ", "4-proxies-over-coded-arq"),
            ("a gateway's defaults", "5-a-gateway-s-defaults"),
        ] {
            let capture = format!("{out}/{place}-{slug}.pcapng");
            assert!(printed.contains(&format!("capture of {scheme}: {capture}\n")), "{printed}");
            assert!(std::fs::metadata(&capture).unwrap().len() > 1000, "{capture}");
        }
    }
    // One scheme has no number.
    let one = scratch.path("one.toml");
    std::fs::write(&one, DEMO.split("[[scheme]]").next().unwrap()).unwrap();
    let output =
        longhaul(&[&["run", &one, "--force", "--out", &out, "--pcap", "satellite"], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(Path::new(&out).join("satellite.pcapng").exists());

    let output = longhaul(&["run", &file, "--pcap", "moon"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("no node or link \"moon\""), "{complaint}");
    assert!(complaint.contains("the nodes are server, terminal, the links satellite"), "{complaint}");
}

/// Wireshark's own dissectors find nothing wrong with a capture.
#[test]
fn wireshark_reads_a_capture_without_a_malformed_packet() {
    let missing = Command::new("tshark").arg("--version").output().is_err();
    let reason = missing.then(|| "tshark is not installed".to_owned());
    if skipped("wireshark_reads_a_capture_without_a_malformed_packet", reason) {
        return;
    }
    let scratch = Scratch::new("pcap");
    let (file, out) = (demo_file(&scratch), scratch.path("out"));
    for network in ["network=ipv4", "network=ipv6"] {
        let capture = ["run", &file, "--force", "--out", &out, "--pcap", "terminal", "--set", network];
        let output = longhaul(&[&capture[..], &SMALL[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let pcap = Path::new(&out).join("terminal-1-tcp.pcapng").display().to_string();
        let tshark = |filter: &str| {
            let checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
            let arguments = [&["-r", &pcap, "-Y", filter][..], &checks[..]].concat();
            let output = Command::new("tshark").args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stdout).lines().count()
        };
        let bad = "_ws.malformed || tcp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\"";
        assert!(tshark("tcp") > 20);
        assert_eq!((tshark(bad), tshark("!tcp")), (0, 0));
    }
}

/// The first block of this kind in a document.
fn example(document: &str, kind: &str) -> String {
    let start = document.find(&format!("```{kind}\n")).unwrap() + kind.len() + 4;
    let end = start + document[start..].find("```").unwrap();
    document[start..end].to_owned()
}

/// What the documentation shows is what the program takes.
#[test]
fn documented_files_are_valid() {
    let scratch = Scratch::new("documented");
    let scenario = scratch.path("documented.toml");
    std::fs::write(&scenario, example(include_str!("../../../docs/scenarios.md"), "toml")).unwrap();
    let output = longhaul(&[&["run", &scenario], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let site = example(include_str!("../../../docs/gateway.md"), "toml");
    let config = gateway::config::Config::parse("site.toml", &site).unwrap();
    assert_eq!(config.tun.name.as_str(), "sat0");
}

#[test]
fn bench_scale_measures_one_size_in_its_own_process() {
    let output = longhaul(&["bench", "scale", "--only", "flows:20", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let step = &printed["steps"][0];
    assert!(step["flows"] == 20 && step["relative"] == 1.0, "{printed}");
    assert!(["events", "in_flight_bytes", "ns_per_event"].iter().all(|key| step[key].as_f64() > Some(0.0)));
    let wrong = longhaul(&["bench", "scale", "--only", "flows:1"]);
    assert!(!wrong.status.success() && text(&wrong.stderr).contains("flows:2 to flows:100000"));
}

/// A shell's redirection makes a file for everybody; a key in it is its owner's all the same.
#[test]
fn a_key_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("keygen");
    let (redirected, named) = (scratch.path("redirected.key"), scratch.path("named.key"));
    let shared = |path: &str| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = std::fs::File::create(&redirected).unwrap();
    shared(&redirected);
    let status = Command::new(env!("CARGO_BIN_EXE_longhaul")).arg("keygen").stdout(file).status().unwrap();
    assert!(status.success());
    let printed = longhaul(&["keygen", "--out", &named]);
    assert!(printed.status.success());
    assert_eq!(printed.stdout, longhaul(&["pubkey", &named]).stdout, "the public key, to be passed on");
    assert_eq!((mode(&redirected), mode(&named)), (0o600, 0o600));
    assert_eq!(longhaul(&["keygen", "--out", &named]).status.code(), Some(1), "no key is overwritten");

    let site = scratch.path("site.toml");
    let text =
        "[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"127.0.0.1:1\"\n[link]\nprotocol = \"plain\"\n";
    std::fs::write(&site, format!("{text}[identity]\nprivate-key-file = \"redirected.key\"\n")).unwrap();
    let check = || longhaul(&["gateway", "--check", "--config", &site]);
    assert_eq!(text_of(&check()), "");
    shared(&redirected);
    let told = format!(
        "longhaul: {redirected}: users other than its owner may have read the key; chmod o= {redirected}\n"
    );
    assert_eq!(text_of(&check()), told);
}

/// What a command that succeeded said on standard error.
fn text_of(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    text(&output.stderr)
}

/// Where there is no checkout.
#[test]
fn what_is_built_in_is_found_by_its_name() {
    let scratch = Scratch::new("built-in");
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(arguments)
            .current_dir(scratch.path(""))
            .output()
            .unwrap()
    };
    for name in ["demo/download", "scenarios/demo/download.toml", "demo/voice.toml"] {
        let output = run(&["run", name, "--check"]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    }
    let sweep = run(&[
        "sweep",
        "demo/download",
        "--axis",
        "traffic.download.bulk.size=20 kB",
        "--seeds",
        "1",
        "--out",
        "out",
    ]);
    assert!(sweep.status.success(), "{}", text(&sweep.stderr));
    let study = run(&[
        "sweep",
        "scenarios/peng/experiments.toml",
        "--axis",
        "delay=0.67",
        "--quick",
        "--out",
        "peng",
    ]);
    assert!(study.status.success(), "{}", text(&study.stderr));
    let unknown = run(&["run", "demo/nothing"]);
    assert!(text(&unknown.stderr).contains("built in are demo/download, "), "{}", text(&unknown.stderr));
}

#[test]
fn init_writes_both_ends_and_overwrites_neither() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = Scratch::new("init");
    let out = scratch.path("");
    let init = || longhaul(&["init", "--endpoint", "hub.example.org", "--behind-hub", "all", "--out", &out]);
    let output = init();
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in
        ["systemctl enable --now longhaul@hub", "masquerade", "net.ipv4.ip_forward=1", "gateway doctor"]
    {
        assert!(text(&output.stdout).contains(part), "no {part:?} in {}", text(&output.stdout));
    }
    for name in ["hub.toml", "site.toml"] {
        let file = scratch.path(name);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let checked = longhaul(&["gateway", "--check", "--config", &file]);
        assert!(checked.status.success(), "{}", text(&checked.stderr));
    }
    let again = init();
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("hub.toml: it exists already"), "{}", text(&again.stderr));
    std::fs::remove_file(scratch.path("hub.toml")).unwrap();
    assert_eq!(init().status.code(), Some(2), "one of them is enough");
    std::fs::remove_file(scratch.path("site.toml")).unwrap();
    let missing = longhaul(&["init", "--out", &scratch.path("none")]);
    assert!(text(&missing.stderr).contains("there is no such directory"), "{}", text(&missing.stderr));
    let nobody = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["init", "--out", &scratch.path("")])
        .stdin(std::process::Stdio::null())
        .output();
    assert!(text(&nobody.unwrap().stderr).contains("--endpoint says it"));
}
