/** The same as the service's: servers of the same major version are spoken to. */
export const VERSION = "0.1.0";
