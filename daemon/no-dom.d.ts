/** Replaces the DOM library, which the types of preact reference: the daemon runs in no browser. */
export {};
