/** Paths of the files that are shipped with the agent in a guest, as packaging/guest-image/runtime lays them out. */
export const RUNTIME = "/usr/lib/roomd";

/** Static, with all of its programs: a root need have none. */
export const BUSYBOX = `${RUNTIME}/bin/busybox`;
