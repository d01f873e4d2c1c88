/**
 * The token with which another host joins: shown once, usable once, for an hour. Secrets that hosts share, such as the key that signs
 * tokens of ports, are stored in the cluster directory sealed with it: read access to the database alone does not reveal them.
 */
import { hash, randomBytes } from "node:crypto";
import { openText, sealingKey, sealText } from "../core/config/sealed-text.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Run } from "./connections.ts";

const PREFIX = "join-";
const SECRET_BYTES = 32;
const TOKEN = /^join-[A-Za-z0-9_-]{43}$/;
const LIFE_SECONDS = 3600;

/** Files of data_dir by name, base64-encoded. */
export type Secrets = Record<string, string>;

/** Makes a token, and stores the secrets sealed with it in the cluster directory. */
export async function invite(run: Run, secrets: Secrets): Promise<{ token: string; expires_in_seconds: number }> {
  const token = PREFIX + randomBytes(SECRET_BYTES).toString("base64url");
  await run("DELETE FROM roomd.invitations WHERE expires_at < now()");
  await run(
    `INSERT INTO roomd.invitations (token_sha256, sealed, expires_at) VALUES ($1, $2, now() + make_interval(secs => $3))`,
    [nameOf(token), sealText(keyOf(token), JSON.stringify(secrets)), LIFE_SECONDS],
  );
  return { token, expires_in_seconds: LIFE_SECONDS };
}

/**
 * Consumes a token and returns its secrets, which are deleted from the cluster directory. Throws invalid_state if the token is not valid.
 */
export async function accept(run: Run, token: string): Promise<Secrets> {
  if (!TOKEN.test(token)) throw notGood("It is malformed.");
  const { rows } = await run(
    "DELETE FROM roomd.invitations WHERE token_sha256 = $1 AND expires_at > now() RETURNING sealed",
    [nameOf(token)],
  );
  const sealed = rows[0]?.sealed;
  if (typeof sealed !== "string") throw notGood("It was already used, or its hour is over.");
  return JSON.parse(openText(keyOf(token), sealed)) as Secrets;
}

function notGood(why: string): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `The token is not valid. ${why}`,
    hint: "Run `roomd cluster token` on a host that is a member.",
  });
}

const nameOf = (token: string) => hash("sha256", `name ${token}`);
const keyOf = (token: string) => sealingKey(token, "roomd cluster join");
