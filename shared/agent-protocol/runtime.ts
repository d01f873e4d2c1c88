/** Paths of the files that are shipped with the agent in a guest, as packaging/guest-image/runtime lays them out. */
export const RUNTIME = "/usr/lib/roomd";

/** Statically linked, with all of its programs: a root file system need not have any. */
export const BUSYBOX = `${RUNTIME}/bin/busybox`;
