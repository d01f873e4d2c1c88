/** Plans of organizations, and the quantities that they cap. The figures are in the configuration. */
export const PLANS = ["free", "starter"] as const;
export type Plan = (typeof PLANS)[number];

export const CAPPED = ["rooms", "sandboxes", "memory_mib", "disk_gib", "drive_gib", "template_mib"] as const;
export type Capped = (typeof CAPPED)[number];
