/** Sums of an organization's usage, including unwritten time. Has no state: reader threads use it too. */
import type { OrgId } from "../../../../shared/ids.ts";
import type { Steps } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import { type Amounts, add, amountsOver, NOTHING } from "./amounts.ts";
import { daysOf, elapsed, type Moment } from "./moment.ts";
import { type Dimension, listOpen, nextDay, sumUsage } from "./store.ts";
import type { OpenRow } from "./table.ts";

export interface SumsInput {
  org_id: OrgId;
  /** Both included. */
  days: { from: string; to: string };
  by: Dimension;
  /** Time up to which open rows count, and the subjects that are known to be in use. */
  now: Moment;
  running: readonly string[];
}

/** For each value of the dimension; one step per day, the last of which also reads unwritten usage. */
export function* sumsOf(queries: Queries, { org_id, days, by, now, running }: SumsInput): Steps<Map<string, Amounts>> {
  const groups = new Map<string, Amounts>();
  const groupOf = (name: string): Amounts => {
    const sum = groups.get(name) ?? { ...NOTHING };
    groups.set(name, sum);
    return sum;
  };
  for (let day = nextDay(queries, org_id, days); day !== null; ) {
    for (const { group, ...amounts } of sumUsage(queries, org_id, day, by)) add(groupOf(group), amounts);
    day = nextDay(queries, org_id, days, day);
    if (day !== null) yield;
  }
  const seen = new Set(running);
  for (const open of listOpen(queries, org_id).filter((each) => isInUse(each, seen))) {
    for (const { day, ms } of daysOf(now.wall_ms, elapsed(open, now).ms)) {
      if (day < days.from || day > days.to) continue;
      const group = { room: open.room_uid, agent: open.agent_id, key: open.key_id, day }[by];
      add(groupOf(group), amountsOver(open, ms));
    }
  }
  return groups;
}

/** Bytes on a drive count until the drive's end; a guest counts only if this daemon has seen it running, since it may have ended before. */
export const isInUse = ({ subject, drive_bytes }: OpenRow, seen: ReadonlySet<string>): boolean =>
  drive_bytes > 0 || seen.has(subject);
