/** Owns where what comes with the agent lies in a guest, as packaging/guest-image/runtime lays it out. */
export const RUNTIME = "/usr/lib/roomd";

/** Static, with all of its programs: a root need have none. */
export const BUSYBOX = `${RUNTIME}/bin/busybox`;
