/** Owns the plans that an organization may have, and what they cap. The figures are the configuration's. */
export const PLANS = ["free", "starter"] as const;
export type Plan = (typeof PLANS)[number];

export const CAPPED = ["rooms", "sandboxes", "memory_mib", "disk_gib", "drive_gib", "template_mib"] as const;
export type Capped = (typeof CAPPED)[number];
