/** The one version number of daemon, CLI and guest agent. The build inserts both values. */
declare const ROOMD_VERSION: string | undefined;
declare const ROOMD_COMMIT: string | undefined;

export const VERSION = typeof ROOMD_VERSION === "string" ? ROOMD_VERSION : "0.1.0-dev";
export const COMMIT = typeof ROOMD_COMMIT === "string" ? ROOMD_COMMIT : "unknown";
