//! What a user is told when something is wrong: the file, the key, the value and what is allowed, in the words of whoever wrote the file.

mod scratch;

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use scratch::Scratch;

const DEMO: &str = include_str!("../../../scenarios/demo/download.toml");

fn longhaul(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).output().unwrap()
}

/// What a run of the demo's scenario complains of, with these options; it has to end with that exit code.
fn complaint(code: i32, options: &[&str]) -> String {
    let scratch = Scratch::new("complaint");
    complaint_about(code, DEMO, &scratch, options)
}

fn complaint_about(code: i32, scenario: &str, scratch: &Scratch, options: &[&str]) -> String {
    let file = scratch.path("demo.toml");
    std::fs::write(&file, scenario).unwrap();
    let output = longhaul(&[&["run", &file, "--seeds", "1"], options].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{options:?}: {told}");
    assert!(!told.contains("panicked"), "{told}");
    told.replace(&file, "demo.toml")
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    for (options, path) in [
        (&["--out", "/proc/none"][..], "/proc/none"),
        (&["--log", "/proc/none/log"], "/proc/none/log"),
        (&["--log", "/dev/full"], "/dev/full"),
        (&["--out", "/dev/null/report"], "/dev/null/report"),
    ] {
        let told = complaint(1, options);
        assert!(told.contains(path), "{options:?}: {told}");
    }
    let sweep = longhaul(&["reproduce", "peng", "--quick", "--out", "/proc/none"]);
    assert_eq!(sweep.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&sweep.stderr).contains("/proc/none"));
    let scratch = Scratch::new("captured");
    std::fs::create_dir(scratch.path("server-1-tcp.pcapng")).unwrap();
    let told = complaint_about(1, DEMO, &scratch, &["--pcap", "server", "--out", &scratch.path("")]);
    assert!(told.contains("server-1-tcp.pcapng"), "{told}");
}

/// Output that nobody reads is no failure; output that cannot be written is one, and no bug.
#[test]
fn standard_output_may_be_closed_or_full() {
    let scratch = Scratch::new("output");
    let file = scratch.path("demo.toml");
    std::fs::write(&file, DEMO).unwrap();
    let commands: [&[&str]; 6] = [
        &["run", &file, "--seeds", "1"],
        &["run", &file, "--seeds", "1", "--json"],
        &["keygen"],
        &["man", "--help"],
        &["schema", "scenario"],
        &["completions", "bash"],
    ];
    for arguments in commands {
        let run = |output: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
            command.args(arguments).stdout(output).stderr(Stdio::piped()).output().unwrap()
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run(writer.into());
        assert!(closed.status.success() && closed.stderr.is_empty(), "{arguments:?}: {closed:?}");
        let full = run(std::fs::File::options().write(true).open("/dev/full").unwrap().into());
        let told = String::from_utf8(full.stderr).unwrap();
        // Help is clap's to print.
        if !arguments.contains(&"--help") {
            assert_eq!(full.status.code(), Some(1), "{arguments:?}: {told}");
            assert!(told.starts_with("longhaul: standard output: No space left"), "{arguments:?}: {told}");
        }
    }
}

#[test]
fn a_set_that_a_scheme_undoes_says_so() {
    let told = complaint(0, &["--set", "link.satellite.protocol=harq"]);
    assert_eq!(
        told,
        "longhaul: --set 'link.satellite.protocol=\"harq\"' changes nothing in schemes \"TCP over COTMLL\", \
         \"TCP over SLACP\", \"proxies over coded ARQ\", which set that key themselves\n"
    );
    assert_eq!(complaint(0, &["--set", "link.satellite.channel.delay=100 ms"]), "");
    // What is said already is no news.
    assert_eq!(complaint(0, &["--set", "link.satellite.protocol=plain"]), "");
}

#[test]
fn an_unknown_name_has_the_known_ones_beside_it() {
    for (set, told) in [
        (
            "link.sat.channel.delay=100 ms",
            "--set 'link.sat.channel.delay=\"100 ms\"': no link \"sat\"; the scenario has satellite",
        ),
        ("link.sat.protocol=plain", "no link \"sat\"; the scenario has satellite"),
        ("traffic.dwnload.bulk.size=1 kB", "no traffic \"dwnload\"; the scenario has download"),
        (
            "host.nobody.tcp.preset=linux",
            "no traffic starts or ends at host \"nobody\"; allowed are server, terminal",
        ),
    ] {
        let complaint = complaint(2, &["--set", set, "--set", "seed=3"]);
        assert!(complaint.contains(told), "{set}: {complaint}");
        // Only what is wrong is blamed.
        assert!(!complaint.contains("seed"), "{set}: {complaint}");
    }
    let scratch = Scratch::new("scheme");
    let wrong = DEMO.replace(
        "set = { link.satellite.protocol = \"cotmll-thesis\" }",
        "set = { link.sat.protocol = \"cotmll-thesis\" }",
    );
    let told = complaint_about(2, &wrong, &scratch, &[]);
    assert!(
        told.contains("scheme \"TCP over COTMLL\": no link \"sat\"; the scenario has satellite"),
        "{told}"
    );
    let file = scratch.path("demo.toml");
    let sweep = longhaul(&[
        "sweep",
        &file,
        "--axis",
        "link.sat.channel.delay=1 s,2 s",
        "--out",
        &scratch.path("out"),
    ]);
    let told = String::from_utf8(sweep.stderr).unwrap();
    assert!(
        sweep.status.code() == Some(2) && told.contains("no link \"sat\"; the scenario has satellite"),
        "{told}"
    );
    // Where something else is wrong too, both are told.
    let told = complaint(2, &["--set", "link.sat.channel.rate=0 bit/s"]);
    assert!(
        told.contains("a rate of zero") && told.contains("no link \"sat\"; the scenario has satellite"),
        "{told}"
    );
}

/// The words in backquotes after `expected`.
fn suggestions(told: &str) -> Vec<String> {
    let expected = told.split_once("expected").map_or("", |(_, after)| after);
    // What follows `in` is the place.
    let expected = expected.split(" in `").next().unwrap_or_default();
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn what_is_suggested_is_taken() {
    let keys = suggestions(&complaint(2, &["--set", "nonsense=3"]));
    assert!(keys.len() > 8, "{keys:?}");
    for key in keys {
        let told = complaint_of_any_code(&["--set", &format!("{key}=3")]);
        assert!(!told.contains("unknown key"), "{key}: {told}");
    }
    let scratch = Scratch::new("suggestions");
    let scheme = |key: &str| {
        let text = DEMO.replace(
            "set = { link.satellite.protocol = \"cotmll-thesis\" }",
            &format!("set = {{ {key} = 3 }}"),
        );
        complaint_about(2, &text, &scratch, &[])
    };
    let keys = suggestions(&scheme("nonsense"));
    assert!(keys.len() > 4, "{keys:?}");
    for key in keys {
        let told = scheme(&key);
        assert!(!told.contains("unknown key") && !told.contains("which all schemes share"), "{key}: {told}");
    }
    let protocols = suggestions(&complaint(2, &["--set", "link.satellite.protocol=nonsense"]));
    assert_eq!(protocols.len(), 6, "{protocols:?}");
    for protocol in protocols {
        complaint(0, &["--check", "--set", &format!("link.satellite.protocol={protocol}")]);
    }
}

fn complaint_of_any_code(options: &[&str]) -> String {
    let scratch = Scratch::new("any");
    let file = scratch.path("demo.toml");
    std::fs::write(&file, DEMO).unwrap();
    let output = longhaul(&[&["run", &file, "--check"], options].concat());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn no_complaint_has_types_of_rust() {
    for set in [
        "link.satellite.channel.errors=3",
        "link.satellite.channel.errors.erasure=3",
        "link.satellite.channel.errors=erasure",
        "link.satellite.channel.errors={}",
        "link.satellite.channel.errors={erasure={probability=2},none={}}",
        "link.satellite.channel.correlated=3",
        "link.satellite.channel=3",
        "link.satellite=3",
        "link.satellite.ends=3",
        "link.satellite.ends=[\"server\"]",
        "link.satellite.protocol.coded.window=x",
        "link.satellite.protocol.cotmll=3",
        "link.satellite.queue.drop-tail.packets=-1",
        "link.satellite.queue=3",
        "traffic.download=3",
        "traffic.download.bulk=3",
        "traffic.download.bulk.connections=-1",
        "traffic.download.bulk.connections=1.5",
        "tcp.recovery=3",
        "tcp=3",
        "seed=x",
        "duration=3",
        "scheme=3",
        "network=ipv5",
    ] {
        let told = complaint(2, &["--set", set]);
        for type_of_rust in
            ["::", "struct", "variant", "enum", "u32", "u64", "usize", "f64", "tuple", "newtype", "Bulk"]
        {
            assert!(!told.contains(type_of_rust), "{set}: {told}");
        }
    }
}

#[test]
fn a_missing_key_blames_its_table_and_no_comment() {
    let scratch = Scratch::new("missing");
    let without = |key: &str| {
        let lines = DEMO.lines().filter(|line| !line.starts_with(&format!("{key} = ")));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let told = |text: &str| complaint_about(2, text, &scratch, &[]);
    assert_eq!(told(&without("duration")), "longhaul: demo.toml: missing key `duration`\n");
    let table = without("rate");
    let line = table.lines().position(|line| line == "[link.satellite.channel]").unwrap() + 1;
    assert_eq!(
        told(&table),
        format!("longhaul: demo.toml:{line}: [link.satellite.channel]: missing key `rate`\n")
    );
    let site = scratch.path("site.toml");
    std::fs::write(&site, "# A comment.\n[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"0.0.0.0:1\"\n")
        .unwrap();
    let output = longhaul(&["gateway", "--check", "--config", &site]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.replace(&site, "site.toml"), "longhaul: site.toml: missing key `identity`\n");
}

/// What only this host or the whole file can tell is told by the check.
#[test]
fn a_check_finds_what_would_not_work() {
    let scratch = Scratch::new("found");
    let site = scratch.path("site.toml");
    let check = |command: &str, text: &str| {
        std::fs::write(&site, text).unwrap();
        std::fs::set_permissions(&site, std::fs::Permissions::from_mode(0o600)).unwrap();
        let output = longhaul(&[command, "--check", "--config", &site]);
        let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), told.map(|told| told.replace(&site, "site.toml")))
    };
    let gateway = |top: &str, link: &str| {
        let text = format!(
            "{top}\n[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"127.0.0.1:1\"\n[identity]\nprivate-key = \
             \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[link]\n{link}\n"
        );
        check("gateway", &text)
    };
    let right = "site.toml: all right\n".to_owned();
    assert_eq!(gateway("", ""), (Some(0), [right.clone(), String::new()]));
    let (code, [said, told]) = gateway("user = \"nobody-like-that\"", "");
    assert_eq!((code, said.as_str()), (Some(2), ""));
    assert!(told.starts_with(
        "longhaul: site.toml: user = \"nobody-like-that\": there is no such user; make it with: "
    ));
    let (code, [_, told]) = gateway("", "once-dscp = [46, 18]\ninteractive-dscp = [18]");
    assert_eq!(code, Some(2));
    assert!(told.contains("site.toml:10: ") && told.contains("once-dscp has 18 too"), "{told}");
    assert_eq!(gateway("", "once-dscp = [18]").0, Some(0), "the other list is the default");
    let proxy = |wan: &str| check("proxy", &format!("lan = \"lh-lan\"\nwan = \"{wan}\"\n"));
    assert_eq!(proxy("lh-wan"), (Some(0), [right, String::new()]));
    let told = "longhaul: site.toml: lan and wan are both \"lh-lan\"; allowed are two different devices\n";
    assert_eq!(proxy("lh-lan"), (Some(2), [String::new(), told.to_owned()]));
}

#[test]
fn a_rate_of_zero_is_refused() {
    let scratch = Scratch::new("rate");
    let told = complaint_about(2, &DEMO.replace("256 kbit/s\"\ndelay", "0 bit/s\"\ndelay"), &scratch, &[]);
    assert!(told.contains(": rate = \"0 bit/s\": a rate of zero; allowed are rates above 0"), "{told}");
    assert!(complaint(2, &["--set", "link.satellite.channel.up-rate=0 kbit/s"]).contains("a rate of zero"));
    for arguments in [
        &[
            "emulate",
            "--udp-a",
            "127.0.0.1:0",
            "--udp-b",
            "127.0.0.1:0",
            "--delay",
            "1 ms",
            "--rate",
            "0 bit/s",
        ][..],
        &["testbed", "up", "--rate", "0 bit/s"],
    ] {
        let output = longhaul(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.starts_with("longhaul: --rate 0 bit/s: a rate of zero"), "{told}");
    }
}

#[test]
fn results_of_another_command_are_not_replaced_unasked() {
    let scratch = Scratch::new("taken");
    let out = scratch.path("out");
    let small = ["--set", "traffic.download.bulk.size=1 kB"];
    let run = |code, options: &[&str]| {
        complaint_about(code, DEMO, &scratch, &[&["--out", &out], &small[..], options].concat())
    };
    // A command that failed has no results to be lost.
    run(1, &["--seed", "9", "--log", "/proc/none/log"]);
    assert_eq!(run(0, &[]), "");
    let report = || std::fs::read_to_string(scratch.path("out/runs.json")).unwrap();
    let first = report();
    // The same again is welcome; something else is not.
    assert_eq!(run(0, &[]), "");
    let told = run(2, &["--seed", "7"]);
    assert!(told.contains(&format!("--out {out} has the results of `longhaul run demo.toml")), "{told}");
    assert!(told.contains("name another directory, or replace them with --force"), "{told}");
    assert_eq!(report(), first);
    let told = run(0, &["--seed", "7", "--force"]);
    assert!(told.contains("replaces the report of: longhaul run demo.toml"), "{told}");
    assert_ne!(report(), first);
    // What asks for nothing that there is leaves nothing behind.
    let none = scratch.path("none");
    for arguments in [&["--figure", "99"][..], &["--merge", "/proc/none"]] {
        let refused = longhaul(&[&["reproduce", "peng", "--quick", "--out", &none], arguments].concat());
        assert!(refused.status.code() == Some(2) && !std::path::Path::new(&none).exists(), "{arguments:?}");
    }
    let study = longhaul(&["reproduce", "peng", "--quick", "--figure", "4", "--seeds", "1", "--out", &out]);
    assert_eq!(study.status.code(), Some(2), "{}", String::from_utf8_lossy(&study.stderr));
}

#[test]
fn the_event_log_has_no_threshold_before_there_is_one() {
    let scratch = Scratch::new("log");
    let log = scratch.path("log.jsonl");
    complaint_about(0, DEMO, &scratch, &["--log", &log]);
    let lines = std::fs::read_to_string(&log).unwrap();
    assert!(!lines.contains("18446744073709551615"));
    let senders = || lines.lines().filter(|line| line.contains("\"event\":\"sender\""));
    assert!(senders().next().unwrap().contains("\"ssthresh\":null"), "{:?}", senders().next());
    // The first blockage sets it.
    let last = senders().next_back().unwrap();
    assert!(last.contains("\"ssthresh\":") && !last.contains("\"ssthresh\":null"), "{last}");
}

/// Goal: after Ctrl-C a run shows the seeds that every scheme has done, and they are what a run of so many seeds gives.
#[test]
#[allow(clippy::disallowed_methods)] // It waits for another process.
fn an_interrupted_run_keeps_what_it_has() {
    let scratch = Scratch::new("interrupted");
    let (file, out) = (scratch.path("demo.toml"), scratch.path("out"));
    std::fs::write(&file, DEMO).unwrap();
    let small = ["--set", "traffic.download.bulk.size=10 kB"];
    let all =
        [&["run", &file, "--seeds", "100000", "--jobs", "1", "--out", &out, "--pcap", "server"], &small[..]]
            .concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    let running = command.args(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A scheme's capture is there once its first run has begun, and what has begun ends.
    let last = scratch.path("out/server-5-a-gateway-s-defaults.pcapng");
    while !std::path::Path::new(&last).exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let kill = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = running.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.starts_with("longhaul: interrupted: finishing the current runs"), "{told}");
    let (_, notice) = told.split_once("interrupted: results are of ").unwrap();
    let (seeds, _) = notice.split_once(" of 100000 seeds").unwrap();
    let hash = |text: &[u8]| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        text.lines().find(|line| line.starts_with("trace hash")).unwrap().to_owned()
    };
    let again = longhaul(&[&["run", &file, "--seeds", seeds], &small[..]].concat());
    assert_eq!(hash(&output.stdout), hash(&again.stdout));
    let page = std::fs::read_to_string(scratch.path("out/report.html")).unwrap();
    assert!(page.contains(&format!("--set seeds={seeds}")));
}

/// Goal: Ctrl-C of a sweep says what is kept, and it is.
#[test]
#[allow(clippy::disallowed_methods)] // It waits for another process.
fn an_interrupted_sweep_says_what_it_keeps() {
    let scratch = Scratch::new("broken-off");
    let (file, out) = (scratch.path("demo.toml"), scratch.path("out"));
    std::fs::write(&file, DEMO).unwrap();
    let axis = "traffic.download.bulk.size=10 kB,20 kB";
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(["sweep", &file, "--axis", axis, "--seeds", "1000", "--jobs", "1", "--out", &out]);
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let kept = || {
        let text = std::fs::read_to_string(scratch.path("out/measured/sweep.jsonl")).unwrap_or_default();
        text.matches('\n').count()
    };
    while kept() < 5 {
        assert_eq!(running.try_wait().unwrap(), None, "it ended of itself");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let kill = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = running.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{told}");
    let notice =
        format!("what was measured is kept in {out}/measured, and the same command goes on from there");
    assert!(told.contains("interrupted: finishing the current runs") && told.contains(&notice), "{told}");
    assert!((5..10_000).contains(&kept()), "{} of 10,000", kept());
}

/// Goal: a sweep over other keys replaces nothing, and goes to a place of its own without being told one; the same sweep finds its own again.
#[test]
fn each_sweep_has_a_place_of_its_own() {
    let scratch = Scratch::new("places");
    std::fs::write(scratch.path("demo.toml"), DEMO).unwrap();
    let place = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        let small = ["--axis", "traffic.download.bulk.size=1 kB", "--seeds", "1"];
        command.current_dir(scratch.path("")).args(["sweep", "demo.toml"]).args(small).args(options);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let shown = String::from_utf8(output.stdout).unwrap();
        shown.lines().find_map(|line| line.strip_prefix("report: ")).unwrap().to_owned()
    };
    let delay = ["--axis", "link.satellite.channel.delay=10 ms,20 ms"];
    assert_eq!(place(&[]), "out/demo/report.html");
    assert_eq!(place(&delay), "out/demo-2/report.html");
    assert_eq!(place(&[]), "out/demo/report.html");
    assert_eq!(place(&delay), "out/demo-2/report.html");
    // What it has measured is where it was, whatever became free.
    std::fs::remove_dir_all(scratch.path("out/demo")).unwrap();
    assert_eq!(place(&delay), "out/demo-2/report.html");
}

/// Goal: whoever edits a study that is built in is told that it is not what runs.
#[test]
fn an_edited_study_beside_is_told_of() {
    let scratch = Scratch::new("edited");
    let reproduce = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.current_dir(scratch.path("")).args(["reproduce", "peng", "--figure", "none"]);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let told = "scenarios/peng/ftp.toml is not what was built in, which is what runs; `longhaul sweep scenarios/peng/experiments.toml` runs it";
    let file = scratch.path("scenarios/peng/ftp.toml");
    std::fs::create_dir_all(scratch.path("scenarios/peng")).unwrap();
    std::fs::write(&file, include_str!("../../../scenarios/peng/ftp.toml")).unwrap();
    assert!(!reproduce().contains("is not what was built in"));
    std::fs::write(&file, "# mine\n").unwrap();
    assert!(reproduce().contains(told), "{}", reproduce());
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new("man");
    assert!(longhaul(&["man", &scratch.path("man")]).status.success());
    for command in ["longhaul", "longhaul-run", "longhaul-gateway-status", "longhaul-traffic-bulk"] {
        let page = std::fs::read_to_string(scratch.path(&format!("man/{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains("longhaul"), "{command}: {page}");
    }
}

#[test]
fn a_check_runs_nothing() {
    let scratch = Scratch::new("check");
    let file = scratch.path("demo.toml");
    std::fs::write(&file, DEMO).unwrap();
    let output = longhaul(&["run", &file, "--check", "--out", &scratch.path("out")]);
    assert!(output.status.success());
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, format!("{file}: ok; 5 schemes, 24 seeds, 120 runs\n"));
    assert!(!std::path::Path::new(&scratch.path("out")).exists());
}

/// The key by its whole path, and no line of a file that nobody has.
#[test]
fn a_wrong_value_of_a_sweep_names_the_key() {
    let scratch = Scratch::new("sweep");
    let out = scratch.path("out");
    let output = longhaul(&[
        "sweep",
        "demo/download",
        "--axis",
        "traffic.download.bulk.size=5 parsecs",
        "--out",
        &out,
    ]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.starts_with("longhaul: demo/download.toml: \"TCP, 5 parsecs\": ")
            && !told.contains("[[experiment]]"),
        "{told}"
    );
    assert!(
        told.contains("is not a size") && told.trim_end().ends_with("in `traffic.download.bulk.size`"),
        "{told}"
    );
}
