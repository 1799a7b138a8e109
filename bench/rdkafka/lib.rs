//! Empty: this package exists to name a dependency.
