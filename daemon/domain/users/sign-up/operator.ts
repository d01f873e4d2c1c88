/** The operator's operations for sign-up, on the host itself: invite a person, approve or refuse requests. */
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { appendAudit } from "../../audit/index.ts";
import { type EmailKind, post } from "../../mail/index.ts";
import { ownerOfEmail } from "../identities/email-ownership.ts";
import { addressOf, requirePerson } from "../person.ts";
import { addLink, pathOf } from "../sign-in/links.ts";
import type { SignUpPlan } from "./sign-up.ts";
import { dropRequest, getRequest, listRequests } from "./sign-up-store.ts";

const MAKER = { type: "operator", id: "host" };
const OPERATOR = { ...MAKER, name: "operator" };

/** A link for sign-up; `path` is null if it is sent by e-mail. */
export interface SignUpLink {
  email: string;
  path: string | null;
  expires_at: string;
}

interface SignUpOperatorDeps {
  database: Database;
  mode: SignUpPlan["mode"];
  /** Whether the daemon sends e-mail. */
  hasMail: boolean;
}

export function makeSignUpOperator({ database, mode, hasMail }: SignUpOperatorDeps) {
  const record = (queries: Queries, event: string, details: Record<string, unknown> = {}) =>
    appendAudit(queries, {
      event,
      outcome: "success",
      at: now(),
      org_id: null,
      actor: OPERATOR,
      source: "cli",
      details,
    });
  const requireOpen = () => {
    if (mode !== "closed") return;
    throw new ServiceError("invalid_state", {
      detail: "Sign-up is off: signup.mode is closed.",
      hint: "Set signup.mode, or add a user to an existing organization with `roomd user create`.",
    });
  };
  const letIn = (queries: Queries, email: string, isMailed: boolean): SignUpLink => {
    if (ownerOfEmail(queries, email)) {
      throw new ServiceError("already_exists", { detail: `An account with the address ${email} already exists.` });
    }
    const { token, row } = addLink(queries, { kind: "signup", email, maker: MAKER });
    const { link_id, expires_at } = row;
    const mail = { kind: "approved" as EmailKind, to: email, user_id: null, link_id };
    const isPosted = isMailed && post(queries, mail);
    return { email, path: isPosted ? null : pathOf("signup", token), expires_at };
  };
  const requireRequest = (queries: Queries, given: string): string => {
    const email = addressOf(given);
    if (getRequest(queries, email)) return email;
    throw new ServiceError("member_not_found", {
      detail: `${email} has no sign-up request.`,
      hint: "`roomd signup list` lists the requests.",
    });
  };
  return {
    /** Throws validation_failed, already_exists, invalid_state if sign-up is closed, or no mail is sent. */
    inviteToSignUp: (given: string, isMailed: boolean) => {
      const email = addressOf(given);
      requirePerson({ email });
      requireOpen();
      if (isMailed && !hasMail)
        throw new ServiceError("invalid_state", { detail: "No e-mail is sent: smtp.host is not set." });
      return database.commit((queries) => {
        record(queries, "auth.signup_invited", { is_mailed: isMailed });
        return letIn(queries, email, isMailed);
      });
    },

    listSignUps: () => listRequests(database.queries),

    /** The link is sent by e-mail if e-mail is configured. Throws member_not_found, already_exists, invalid_state. */
    approveSignUp: (given: string) => {
      requireOpen();
      return database.commit((queries) => {
        const email = requireRequest(queries, given);
        dropRequest(queries, email);
        record(queries, "auth.signup_approved", { is_mailed: hasMail });
        return letIn(queries, email, hasMail);
      });
    },

    /** Sends no notification. Throws member_not_found. */
    refuseSignUp: (given: string) =>
      database.commit((queries) => {
        const email = requireRequest(queries, given);
        dropRequest(queries, email);
        record(queries, "auth.signup_refused");
        return { email };
      }),
  };
}
