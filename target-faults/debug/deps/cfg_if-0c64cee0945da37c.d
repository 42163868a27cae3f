/tmp/wt/s1/target-faults/debug/deps/cfg_if-0c64cee0945da37c.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/tmp/wt/s1/target-faults/debug/deps/libcfg_if-0c64cee0945da37c.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/tmp/wt/s1/target-faults/debug/deps/libcfg_if-0c64cee0945da37c.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs:
