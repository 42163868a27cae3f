//! The scripts of `crates/tcp/tests/scripts` that are marked `--kernel`, on the kernel's own TCP in real time: they state what
//! the kernel does, also where a host of ours differs.
//!
//! This needs root, network namespaces, TUN and `ip`. Where something is missing it says so and passes, unless
//! `LONGHAUL_REQUIRE_ROOT=1`: then it fails. A script that fails runs again, three times in all, for a busy machine may be late.

mod packetdrill {
    pub(crate) mod kernel;
}
#[path = "../../cli/tests/requirements/mod.rs"]
mod requirements;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::packetdrill::Script;
use base::Duration;
use longhaul_field::testbed::namespaces::{Namespace, check_namespaces};
use packetdrill::kernel::Kernel;
use requirements::skipped;

/// Beyond a script's own tolerance: the kernel's timers have ticks of 4 ms where there are 250 a second, and threads wait for
/// their turn.
const MARGIN: Duration = Duration::from_millis(16);
/// How many run at once: they mostly wait.
const AT_ONCE: usize = 8;
/// How often a script is tried.
const TRIES: usize = 3;

/// The marked scripts, those of known differences too.
fn scripts() -> Vec<(PathBuf, Script)> {
    let only = std::env::var("LONGHAUL_SCRIPT").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tcp/tests/scripts");
    let mut found = Vec::new();
    for folder in [root.clone(), root.join("known-differences")] {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            let is_script = path.extension().is_some_and(|extension| extension == "pkt");
            if !is_script || !path.to_string_lossy().contains(&only) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let script = Script::parse(&text).unwrap_or_else(|error| panic!("{}:{error}", path.display()));
            if script.options.kernel {
                found.push((path, script));
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

/// Runs a script once, in a namespace of its own.
fn run_once(script: &Script, number: usize) -> Result<(), String> {
    let namespace = Place(Namespace::new(format!("longhaul-pd{}-{number}", std::process::id())));
    namespace.0.add().map_err(|error| error.to_string())?;
    let script = script.clone();
    let work = move || {
        let mut kernel = Kernel::new(&script)?;
        ::packetdrill::run(&script, &mut kernel, MARGIN).map_err(|failure| failure.to_string())
    };
    let thread = namespace.0.enter(work).map_err(|error| error.to_string())?;
    thread.join().map_err(|_| "a thread panicked".to_owned())?.map_err(|error| error.to_string())?
}

struct Place(Namespace);

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing is left to do about one that does not go.
        let _ = self.0.delete();
    }
}

#[test]
#[ignore = "runs in real time, which a busy machine cannot keep to"]
fn the_kernel_does_what_the_marked_scripts_say() {
    let name = "the_kernel_does_what_the_marked_scripts_say";
    let probe = format!("longhaul-probe-pd{}", std::process::id());
    if skipped(name, check_namespaces(&probe).err().map(|error| error.to_string())) {
        return;
    }
    let scripts = scripts();
    assert!(!scripts.is_empty(), "no script is marked --kernel");
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(scripts.len()) {
            scope.spawn(|| {
                while let Some((path, script)) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(message) = complaint(path, script) {
                        failures.lock().unwrap().push(message);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} fail\n{}", failures.len(), scripts.len(), failures.join("\n\n"));
}

/// What a script fails with each time, if it does.
fn complaint(path: &Path, script: &Script) -> Option<String> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let mut last = None;
    for _ in 0..TRIES {
        match run_once(script, NUMBER.fetch_add(1, Ordering::Relaxed)) {
            Ok(()) => return None,
            Err(message) => last = Some(message),
        }
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    last.map(|message| format!("crates/tcp/tests/scripts/.../{name}:{message}"))
}
