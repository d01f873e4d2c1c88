/** Owns organizations as they are put together: who is calling, what plans allow, what is used, and the credits for it. */
import { GUEST_CIDS, type OrgId } from "../../shared/ids.ts";
import type { HostUse } from "../cluster/directory.ts";
import { hasPlacements } from "../cluster/placements.ts";
import type { Config } from "../core/config.ts";
import type { Queries } from "../db/client.ts";
import { Outbox, planMail } from "../domain/mail/index.ts";
import {
  Credits,
  getCredits,
  Meter,
  makeOrgChanges,
  makeOrgs,
  makeQuota,
  type Plans,
  pricesOf,
  usedCredits,
} from "../domain/orgs/index.ts";
import { countRooms, countRoomsByOrg, orgsLeftBehind } from "../domain/rooms/index.ts";
import { NO_SANDBOXES, orgCids, orgSandboxes, sandboxesByOrg } from "../domain/sandboxes/index.ts";
import { templateMib } from "../domain/templates/org-disk.ts";
import { makeUsers, planSignUp, planUpstream, Upstream } from "../domain/users/index.ts";
import { planListen } from "../edge/http/tls.ts";
import type { Hold } from "../edge/tenure.ts";
import { isTrustworthy } from "../edge/web/headers.ts";
import type { Base } from "./base.ts";
import { MAKER_RULES } from "./made.ts";
import { PERSONAL } from "./personal.ts";

export type Orgs = ReturnType<typeof composeOrgs>;

/** What is made later. */
interface Later {
  /** Ends the organization's sandboxes that are not in standby. Never rejects. */
  endSandboxes(orgId: OrgId): Promise<void>;
  /** What its drives take together. */
  driveUsed(orgId: OrgId): Promise<number>;
  /** Ends all rooms of an organization. Rejects where one could not be ended. */
  endRooms(orgId: OrgId): Promise<void>;
  /** Where the API and the web are. */
  url(): string;
}

export function composeOrgs(
  { config, log, paths, database, reads, cluster, directory, finder }: Base,
  plans: Plans,
  later: Later,
) {
  const { queries } = database;
  const prices = pricesOf(config);
  const graceSeconds = config["billing.grace"];
  const quota = makeQuota({
    queries,
    plans,
    held: (within, orgId) => directory.withOthers(within, orgId, heldHere(within, orgId)),
    driveUsed: later.driveUsed,
    templateMib: (orgId) => templateMib(paths, orgId),
  });
  const meter = new Meter(database, prices);
  const credits = new Credits({
    database,
    log,
    meter,
    graceSeconds,
    usedElsewhere: directory.usedElsewhere,
    planCredits: (orgId) => quota.capsOf(orgId).credits,
    endSandboxes: later.endSandboxes,
  });
  const changes = makeOrgChanges(directory.database, MAKER_RULES);
  const orgs = makeOrgs({
    database: directory.database,
    changes,
    isShared: cluster !== null,
    log,
    reads,
    meter,
    roomName: finder.nameOf,
    credits: (orgId) => credits.standing(queries, orgId),
    standing: async (orgId) => ({
      ...(await quota.standing(orgId)),
      guest_cids: { in_use: orgCids(queries, orgId), total: GUEST_CIDS },
    }),
  });
  // What others have ended ends here too.
  directory.onChange(() => {
    orgs.holds.look();
    credits.lookSoon();
  });
  const plan = planUpstream(config);
  const mailPlan = planMail(config);
  const users = makeUsers({
    database: directory.database,
    changes,
    log,
    planOf: orgs.planOf,
    url: later.url,
    holds: orgs.holds,
    personal: PERSONAL,
    upstream: plan && new Upstream(plan),
    plans,
    hasMail: mailPlan !== null,
    signUpPlan: signUpPlanOf(config),
    rooms: {
      left: countRooms,
      leftElsewhere: hasPlacements,
      leftBehind: cluster ? orgsLeftBehind : () => [],
      endAll: later.endRooms,
    },
  });
  const outbox = new Outbox({
    database,
    shared: directory.database,
    log,
    plan: mailPlan,
    url: later.url,
    relink: (within, linkId) => users.links.relink(within, linkId),
  });
  const hold: Hold = (held, cut) => (typeof held === "string" ? orgs.holdKey(held, cut) : users.hold(held, cut));
  return { outbox, orgs, users, hold, changes, quota, meter, credits, prices, graceSeconds };
}

/** What an organization has on this host, and has used of its credits. */
export function heldHere(queries: Queries, orgId: OrgId): HostUse {
  const { used_micro } = getCredits(queries, orgId);
  const { hibernated_rooms, ...held } = orgSandboxes(queries, orgId);
  return { rooms: countRooms(queries, orgId) - hibernated_rooms, ...held, used_micro };
}

/** The same of all organizations that have rooms or sandboxes here, or have used credits. */
export function allHeldHere(queries: Queries): Map<OrgId, HostUse> {
  const [rooms, sandboxes, credits] = [countRoomsByOrg(queries), sandboxesByOrg(queries), usedCredits(queries)];
  const orgs = new Set([...rooms.keys(), ...sandboxes.keys(), ...credits.keys()]);
  const heldBy = (orgId: OrgId): HostUse => {
    const { hibernated_rooms, ...held } = sandboxes.get(orgId) ?? NO_SANDBOXES;
    return { rooms: (rooms.get(orgId) ?? 0) - hibernated_rooms, ...held, used_micro: credits.get(orgId) ?? 0 };
  };
  return new Map([...orgs].map((orgId) => [orgId, heldBy(orgId)]));
}

/** Throws ConfigError. */
export function signUpPlanOf(config: Config) {
  const isSafe = isTrustworthy(new URL(planListen(config).url));
  return planSignUp(config, { isTrustworthy: isSafe, hasMail: planMail(config) !== null });
}
