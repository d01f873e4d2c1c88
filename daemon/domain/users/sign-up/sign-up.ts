/**
 * Sign-up: a person becomes a user with a new organization. Each address has to be verified by a mailed link, or the operator vouches for
 * it by handing over a link:
 *
 *     open       address → e-mail with a link → name, organization and a way to sign in
 *     approval   address → e-mail with a link → a note to the operator, who approves → e-mail with another link → the same
 *     invite     the operator's link → the same
 *
 * The response does not reveal whether an address has an account; the e-mail to its owner does. Credits are granted once per address,
 * independent of the account's later state.
 */
import { createHash } from "node:crypto";
import { newId, type OrgId, type UserId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { type Config, ConfigError } from "../../../core/config/config.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { appendAudit } from "../../audit/index.ts";
import { countPosted, post, postNothing } from "../../mail/index.ts";
import { grantCredits, type OrgChanges, type Plans } from "../../orgs/index.ts";
import { isClaimed, ownerOfEmail, releaseEmail } from "../identities/email-ownership.ts";
import { addressOf, requirePerson, requireText } from "../person.ts";
import { type RequestSource, record } from "../record.ts";
import { begin, type SignedIn } from "../sessions/session-start.ts";
import { addLink, requireLink } from "../sign-in/links.ts";
import { insertMembership, useLink } from "../store.ts";
import { addNew, type NewPerson, type NewUsers } from "./new-user.ts";
import { addGrant, addRequest, countRequests, dropRequest, getRequest } from "./sign-up-store.ts";

const PLAN = "free";
const MAX_REQUESTS = 1000;
const MAX_NOTE = 500;
const MAKER = { type: "system", id: "signup" };

export interface SignUpPlan {
  mode: Config["signup.mode"];
  /** Accepted domains of addresses; empty: all. */
  domains: readonly string[];
  /** E-mails per day for sign-up, for all people together; 0: no limit. */
  perDay: number;
  /** Granted to a new organization. */
  credits: number;
}

/** Throws ConfigError. `isTrustworthy`: input at the service's URL cannot be read by third parties in transit. */
export function planSignUp(
  config: Config,
  { isTrustworthy, hasMail }: { isTrustworthy: boolean; hasMail: boolean },
): SignUpPlan {
  const { "signup.mode": mode, "signup.per_day": perDay, "credits.signup": credits } = config;
  const isForAll = mode === "open" || mode === "approval";
  const needs = (feature: string) => new ConfigError(`signup.mode = "${mode}" needs ${feature}`);
  if (isForAll && !config["web.enabled"]) throw needs("web.enabled = true");
  if (isForAll && !isTrustworthy) throw needs("TLS, or http.base_url with the https:// address of a proxy");
  if (mode === "open" && !hasMail) throw needs("smtp.host, so that addresses can be verified");
  const domains = config["signup.domains"]
    .toLowerCase()
    .split(",")
    .map((each) => each.trim());
  return { mode, domains: domains.filter(Boolean), perDay, credits };
}

/** Data of a sign-up request, in addition to the address. */
export interface SignUpNote {
  name: string;
  note: string;
}

interface SignUpDeps {
  database: Database;
  changes: OrgChanges;
  plans: Plans;
  plan: SignUpPlan;
  hasMail: boolean;
  newcomers: NewUsers;
}

export class SignUp {
  readonly #deps: SignUpDeps;

  constructor(deps: SignUpDeps) {
    this.#deps = deps;
  }

  get mode(): SignUpPlan["mode"] {
    return this.#deps.plan.mode;
  }

  /** Whether a person may request it without a link. */
  get isForAll(): boolean {
    return this.mode === "open" || this.mode === "approval";
  }

  /** Whether a request is answered by e-mail first; else the note is sent with the address. */
  get sendsLetters(): boolean {
    return this.#deps.hasMail;
  }

  /**
   * Requests a sign-up. The response does not reveal whether the address has an account. Throws validation_failed, sign_up_closed, and
   * rate_limited if the day's e-mails are used up.
   */
  async ask(given: string, note: SignUpNote, { ip, request_id }: RequestSource): Promise<void> {
    const { database, hasMail } = this.#deps;
    if (!this.isForAll) throw new ServiceError("sign_up_closed");
    const email = addressOf(given);
    requirePerson({ email });
    this.#requireDomain(email);
    if (!hasMail) requireNote(note);
    this.#requireRoom(database.queries);
    await database.commit((queries) => {
      this.#requireRoom(queries);
      const isHere = ownerOfEmail(queries, email) !== undefined;
      const event = { event: "auth.signup_asked", outcome: "success" as const, at: now(), org_id: null };
      appendAudit(queries, {
        ...event,
        actor: { ...MAKER, name: "signup" },
        source: "web",
        request_id,
        ip,
        details: {},
      });
      if (!hasMail) return fileRequest(queries, email, note, isHere);
      const kind = this.mode === "open" ? "signup" : "request";
      const { row } = addLink(queries, { kind, email: isHere ? null : email, maker: MAKER, isVoid: isHere });
      const link_id = isHere ? null : row.link_id;
      post(queries, { kind: isHere ? "known" : kind, to: email, user_id: null, link_id });
    });
  }

  /**
   * A link's purpose: to sign up, or to send a request to the operator; and whether a user here claims the address. Throws link_not_found.
   */
  look(token: string): { kind: "signup" | "request"; email: string; isClaimed: boolean } {
    const { kind, email } = requireLink(this.#deps.database.queries, token, ["signup", "request"]);
    if ((kind !== "signup" && kind !== "request") || email === null || this.mode === "closed") {
      throw new ServiceError("link_not_found");
    }
    return { kind, email, isClaimed: isClaimed(this.#deps.database.queries, email) };
  }

  /** A person with a verified address sends a request to the operator. Throws link_not_found, validation_failed, rate_limited. */
  async request(token: string, note: SignUpNote): Promise<void> {
    requireNote(note);
    const { kind, email } = this.look(token);
    if (kind !== "request") throw new ServiceError("link_not_found");
    await this.#deps.database.commit((queries) => {
      const { link_id } = requireLink(queries, token, ["request"]);
      if (!useLink(queries, link_id, now())) throw new ServiceError("link_not_found");
      fileRequest(queries, email, note);
    });
  }

  /** Throws link_not_found, validation_failed, already_exists, rate_limited. */
  async finish(
    token: string,
    { name, way }: Omit<NewPerson, "email">,
    orgName: string,
    requestSource: RequestSource,
  ): Promise<SignedIn> {
    const { changes, newcomers, plan, plans } = this.#deps;
    const { kind, email } = this.look(token);
    if (kind !== "signup") throw new ServiceError("link_not_found");
    const called = orgName.trim();
    requireText("org_name", called, 64);
    const made = await newcomers.make({ email, name, way }, requestSource);
    const created_at = now();
    const user = { ...made.user, verified_at: created_at };
    const org = { org_id: newId("org"), name: called, plan: PLAN, created_at } as const;
    return await changes.addOrg({ org, keys: [] }, (queries) => {
      const { link_id } = requireLink(queries, token, ["signup"]);
      if (!useLink(queries, link_id, created_at)) throw new ServiceError("link_not_found");
      releaseEmail(queries, email, null);
      addNew(queries, { ...made, user });
      dropRequest(queries, email);
      const { org_id } = org;
      record(queries, "org.created", user, org_id, requestSource, { name: called, plan: PLAN });
      record(queries, "user.created", user, org_id, requestSource, { by: "signup" });
      insertMembership(queries, { org_id, user_id: user.user_id, role: "owner", created_at });
      record(queries, "member.added", user, org_id, requestSource, { user_id: user.user_id, role: "owner" });
      welcome(queries, {
        email,
        user_id: user.user_id,
        org_id,
        credits: plan.credits,
        planCredits: plans[PLAN].credits,
        at: created_at,
      });
      return begin(queries, user, org_id, requestSource, "signup");
    });
  }

  #requireDomain(email: string): void {
    const { domains } = this.#deps.plan;
    if (domains.length === 0 || domains.includes(email.slice(email.lastIndexOf("@") + 1))) return;
    const message = `is not of ${domains.join(", ")}`;
    throw new ServiceError("validation_failed", { errors: [{ field: "email", code: "not_allowed", message }] });
  }

  /** Throws rate_limited. */
  #requireRoom(queries: Queries): void {
    const { plan, hasMail } = this.#deps;
    const letters = hasMail && plan.perDay > 0 ? countPosted(queries, ["signup", "request", "known"]) : 0;
    if (!hasMail || plan.perDay === 0 || letters < plan.perDay) return;
    throw new ServiceError("rate_limited", {
      detail: "The limit of sign-up e-mails for today is reached.",
      hint: "Try again tomorrow.",
      retryAfterSeconds: 3600,
    });
  }
}

/** Reports all errors together. Throws validation_failed. */
function requireNote({ name, note }: SignUpNote): void {
  requirePerson({ name: name.trim() });
  requireText("note", note.trim(), MAX_NOTE, 0);
}

/**
 * Within a transaction; the newest request of an address is valid. If the address already has an account, nothing is stored, and the
 * response does not reveal it. Throws rate_limited.
 */
function fileRequest(queries: Queries, email: string, { name, note }: SignUpNote, isHere = false): void {
  if (countRequests(queries) >= MAX_REQUESTS && !getRequest(queries, email)) {
    throw new ServiceError("rate_limited", {
      detail: "Too many sign-up requests are waiting for the operator.",
      hint: "Try again tomorrow.",
      retryAfterSeconds: 3600,
    });
  }
  if (isHere) postNothing(queries, email, "approved");
  else addRequest(queries, { email, name: name.trim(), note: note.trim(), created_at: now() });
}

interface Welcomed {
  email: string;
  user_id: UserId;
  org_id: OrgId;
  credits: number;
  planCredits: number | null;
  at: string;
}

/** Within a transaction: grants credits to an address that had none before; other addresses get an entry of zero. */
function welcome(queries: Queries, { email, org_id, credits, planCredits, at }: Welcomed): void {
  const address_sha256 = addressHash(email);
  if (credits === 0) return;
  // Without an entry there would be no limit.
  const isFirst = addGrant(queries, { address_sha256, granted_at: at });
  const more = isFirst ? credits : 0;
  const reason = isFirst ? "signing up" : "sign-up with an address that already received its credits";
  const why = { reason, effect: `signup:${address_sha256.slice(0, 32)}` };
  const { granted, remaining } = grantCredits(queries, org_id, planCredits, more, why);
  const actor = { ...MAKER, name: "signup" };
  const details = { more, granted, remaining, reason: why.reason };
  appendAudit(queries, { event: "org.credits_granted", outcome: "success", at, org_id, actor, source: "web", details });
}

/** The hash ignores the part after a +, which leads to the same mailbox. */
function addressHash(email: string): string {
  const [local = "", domain = ""] = email.split(/@(?=[^@]*$)/);
  return createHash("sha256")
    .update(`${local.split("+")[0]}@${domain}`)
    .digest("hex");
}
