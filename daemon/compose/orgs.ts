/** Composition of organizations: caller authentication, plan limits, usage, and credits. */
import { GUEST_CIDS, type OrgId } from "../../shared/ids.ts";
import { hasPlacements } from "../cluster/placements.ts";
import type { Config } from "../core/config/config.ts";
import { Outbox, planMail } from "../domain/mail/index.ts";
import {
  Credits,
  type Meter,
  makeOrgChanges,
  makeOrgs,
  makeQuota,
  type Plans,
  type Prices,
} from "../domain/orgs/index.ts";
import { countRooms, orgsLeftBehind } from "../domain/rooms/index.ts";
import { orgCids } from "../domain/sandboxes/index.ts";
import { templateMib } from "../domain/templates/org-disk.ts";
import { makeUsers, OidcClient, planOidc, planSignUp } from "../domain/users/index.ts";
import { planListen } from "../edge/http/tls.ts";
import type { Hold } from "../edge/pipeline/call-lifetime.ts";
import { isTrustworthy } from "../edge/web/headers.ts";
import type { Base } from "./base.ts";
import { MAKER_RULES } from "./made.ts";
import { PERSONAL } from "./personal.ts";
import { makeHeld } from "./quota-use.ts";

export type Orgs = ReturnType<typeof composeOrgs>;

interface OrgParts {
  plans: Plans;
  prices: Prices;
  meter: Meter;
  /** Disk use of an organization's drives, snapshots and checkpoints. */
  driveUsed(orgId: OrgId): Promise<number>;
  /** Address of the web. */
  url(): string;
}

export function composeOrgs(
  { config, log, paths, database, reads, cluster, directory, hostId, finder }: Base,
  { plans, prices, meter, driveUsed, url }: OrgParts,
) {
  const { queries } = database;
  const graceSeconds = config["billing.grace"];
  const held = makeHeld(cluster ? hostId : null);
  const quota = makeQuota({
    queries,
    plans,
    held: (within, orgId) => directory.withOthers(within, orgId, held.of(within, orgId)),
    driveUsed,
    templateMib: (orgId) => templateMib(paths, orgId),
  });
  const credits = new Credits({
    database,
    log,
    meter,
    graceSeconds,
    usedElsewhere: directory.usedElsewhere,
    planCredits: (orgId) => quota.capsOf(orgId).credits,
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
  // Revocations by other hosts take effect here too.
  directory.onChange(() => {
    orgs.holds.look();
    credits.lookSoon();
  });
  const plan = planOidc(config);
  const mailPlan = planMail(config);
  const users = makeUsers({
    database: directory.database,
    changes,
    log,
    planOf: orgs.planOf,
    url,
    holds: orgs.holds,
    personal: PERSONAL,
    upstream: plan && new OidcClient(plan),
    plans,
    hasMail: mailPlan !== null,
    signUpPlan: signUpPlanOf(config),
    rooms: {
      left: countRooms,
      leftElsewhere: hasPlacements,
      leftBehind: cluster ? orgsLeftBehind : () => [],
    },
  });
  const outbox = new Outbox({
    database,
    shared: directory.database,
    log,
    plan: mailPlan,
    url,
    relink: (within, linkId) => users.links.relink(within, linkId),
  });
  const hold: Hold = (held, cut) => (typeof held === "string" ? orgs.holdKey(held, cut) : users.hold(held, cut));
  return { outbox, orgs, users, hold, changes, held, quota, meter, credits, prices, graceSeconds };
}

/** Throws ConfigError. */
export function signUpPlanOf(config: Config) {
  const isSafe = isTrustworthy(new URL(planListen(config).url));
  return planSignUp(config, { isTrustworthy: isSafe, hasMail: planMail(config) !== null });
}
