//! One file per subcommand: its arguments and what it prints.

mod bench;
mod bench_channels;
mod bench_code;
mod bench_faulkner;
mod bench_gateway;
mod bench_hub;
mod bench_latency;
mod bench_pages;
mod bench_scale;
mod bench_tcp;
mod captures;
mod completions;
mod demo;
mod destination;
mod emulate;
mod gateway;
mod gateway_status;
mod interruption;
mod keygen;
mod known;
mod log;
mod man;
mod outcome;
mod pages;
mod peer;
mod peer_add;
mod peer_files;
mod proxy;
mod pubkey;
mod reproduce;
mod run;
mod schema;
mod scheme;
mod secret;
mod studies;
mod suite;
mod sweep;
mod testbed;
mod traffic;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// TCP/IP over satellite and lossy wireless links: a gateway, and a lab that simulates the same protocol code.
#[derive(Debug, Parser)]
#[command(
    name = "longhaul",
    version,
    propagate_version = true,
    after_help = "Example:\n  longhaul demo\n  longhaul run --help"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Run(run::Arguments),
    Sweep(sweep::Arguments),
    Reproduce(reproduce::Arguments),
    Bench(bench::Arguments),
    Gateway(gateway::Arguments),
    Proxy(proxy::Arguments),
    Keygen(keygen::Arguments),
    Pubkey(pubkey::Arguments),
    Peer(peer::Arguments),
    Emulate(Box<emulate::Arguments>),
    Schema(schema::Arguments),
    Testbed(testbed::Arguments),
    Traffic(traffic::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs the chosen subcommand.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    let code = match &cli.command {
        Command::Demo(arguments) => demo::execute(arguments),
        Command::Run(arguments) => run::execute(arguments),
        Command::Sweep(arguments) => sweep::execute(arguments),
        Command::Reproduce(arguments) => reproduce::execute(arguments),
        Command::Bench(arguments) => bench::execute(arguments),
        Command::Gateway(arguments) => gateway::execute(arguments),
        Command::Proxy(arguments) => proxy::execute(arguments),
        Command::Keygen(arguments) => keygen::execute(arguments),
        Command::Pubkey(arguments) => pubkey::execute(arguments),
        Command::Peer(arguments) => peer::execute(arguments),
        Command::Emulate(arguments) => emulate::execute(arguments),
        Command::Schema(arguments) => schema::execute(arguments),
        Command::Testbed(arguments) => testbed::execute(arguments),
        Command::Traffic(arguments) => traffic::execute(arguments),
        Command::Completions(arguments) => completions::execute(arguments),
        Command::Man(arguments) => man::execute(arguments),
    };
    outcome::ended(code)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// Columns of a terminal that nobody has made wider.
    const COLUMNS: usize = 80;

    /// The examples of a command and of those within it, each a line of a shell.
    fn examples(command: &clap::Command, all: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let text = help.replace("\\\n", " ");
        all.extend(
            text.lines().map(str::trim).filter(|line| line.starts_with("longhaul ")).map(str::to_owned),
        );
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= COLUMNS, "wrapped, it cannot be pasted: {line}");
        }
        command.get_subcommands().for_each(|inner| examples(inner, all));
    }

    #[test]
    fn examples_can_be_pasted() {
        let mut all = Vec::new();
        examples(&Cli::command(), &mut all);
        assert!(all.len() > 40, "{all:?}");
        for example in all {
            // What a shell does with the rest is its own.
            let command = example.split(['|', '&', '>']).next().unwrap_or_default();
            let words = shlex::split(command).unwrap_or_else(|| panic!("{example}: quotes"));
            if let Err(error) = Cli::command().try_get_matches_from(words) {
                let asks = matches!(error.kind(), clap::error::ErrorKind::DisplayHelp);
                assert!(asks, "{example}: {error}");
            }
        }
    }
}
