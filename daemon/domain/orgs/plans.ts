/** The plans and their caps, from the configuration. */
import { CAPPED, type Capped, PLANS, type Plan } from "../../../shared/api/people/plans.ts";
import { type Config, ConfigError } from "../../core/config/config.ts";

/** Exceeding the soft cap causes a warning, exceeding the hard cap a refusal. */
export interface Caps {
  soft_cap: number;
  hard_cap: number;
}

export interface PlanCaps {
  rooms: Caps;
  sandboxes: Caps;
  memory_mib: Caps;
  disk_gib: Caps;
  template_mib: Caps;
  drive: { soft_cap_bytes: number; hard_cap_bytes: number };
  /** Credits granted with the plan; null: no limit. */
  credits: number | null;
}

export type Plans = Readonly<Record<Plan, PlanCaps>>;

/** Throws ConfigError. */
export function plansOf(config: Config): Plans {
  return Object.fromEntries(PLANS.map((plan) => [plan, planOf(config, plan)])) as Record<Plan, PlanCaps>;
}

function planOf(config: Config, plan: Plan): PlanCaps {
  const capsOf = (quantity: Capped): Caps => {
    const soft_cap = config[`plans.${plan}.${quantity}_soft_cap`];
    const hard_cap = config[`plans.${plan}.${quantity}_hard_cap`];
    if (soft_cap <= hard_cap) return { soft_cap, hard_cap };
    throw new ConfigError(
      `plans.${plan}.${quantity}_soft_cap = ${soft_cap}: must be at most the hard cap, ${hard_cap}`,
    );
  };
  const { drive_gib, ...caps } = Object.fromEntries(CAPPED.map((quantity) => [quantity, capsOf(quantity)])) as Record<
    Capped,
    Caps
  >;
  const drive = { soft_cap_bytes: drive_gib.soft_cap * 1024 ** 3, hard_cap_bytes: drive_gib.hard_cap * 1024 ** 3 };
  const credits = config[`plans.${plan}.credits`] || null;
  return { ...caps, drive, credits };
}
