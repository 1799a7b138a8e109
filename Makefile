# What a developer and the gate run. `make verify` never writes; `make fix` does.
.PHONY: test verify fix unit

test: verify unit

verify:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

unit:
	cargo test --workspace --locked

fix:
	cargo fmt --all
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	MONEDULA_TIDY=write cargo test -p monedula --test tidy
