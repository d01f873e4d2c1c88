/**
 * The identifiers: their brands, their patterns and their generation. A generated id is a prefix and a ULID, so ids of one kind sort by
 * creation time.
 */
import { incrementBase32, ulid } from "ulid";

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type OrgId = Branded<"org">;
export type RoomUid = Branded<"room">;
export type SandboxId = Branded<"sandbox">;
export type ExecId = Branded<"execution">;
export type TerminalId = Branded<"terminal">;
export type SshKeyId = Branded<"ssh key">;
export type SshAccessId = Branded<"ssh access">;
export type KeyId = Branded<"key">;
export type AuditId = Branded<"audit">;
export type RequestId = Branded<"request">;
export type MessageId = Branded<"message">;
export type UserId = Branded<"user">;
export type SessionId = Branded<"session">;
export type LinkId = Branded<"link">;
export type ApplicationId = Branded<"application">;
export type PasskeyId = Branded<"passkey">;
export type CreditEntryId = Branded<"credit entry">;
export type IdentityId = Branded<"identity">;
export type MailId = Branded<"mail">;
export type BuildId = Branded<"template build">;
export type SnapshotId = Branded<"snapshot">;
export type CheckpointId = Branded<"checkpoint">;
export type RecordingId = Branded<"recording">;
export type WebhookId = Branded<"webhook">;

interface Generated {
  org: OrgId;
  rom: RoomUid;
  sbx: SandboxId;
  exe: ExecId;
  ter: TerminalId;
  ssk: SshKeyId;
  ssa: SshAccessId;
  kid: KeyId;
  evt: AuditId;
  req: RequestId;
  msg: MessageId;
  usr: UserId;
  ses: SessionId;
  lnk: LinkId;
  oap: ApplicationId;
  pky: PasskeyId;
  cre: CreditEntryId;
  idn: IdentityId;
  mal: MailId;
  bld: BuildId;
  rec: RecordingId;
  snap: SnapshotId;
  chk: CheckpointId;
  whk: WebhookId;
}

const RANDOM_CHARACTERS = 16;
const BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/**
 * Each is greater than the previous one, even within a millisecond or when the clock is set back: then the last character is incremented.
 */
function monotonicUlids(): () => string {
  let [lastMs, front, last] = [0, "", 0];
  const bytes = new Uint8Array(RANDOM_CHARACTERS);
  return () => {
    const ms = Date.now();
    if (ms > lastMs) {
      const fresh = ulidFrom(ms, crypto.getRandomValues(bytes));
      [lastMs, front, last] = [ms, fresh.slice(0, -1), BASE32.indexOf(fresh.slice(-1))];
    } else if (++last === BASE32.length) [front, last] = [incrementBase32(front), 0];
    return front + BASE32[last];
  };
}

const nextUlid = monotonicUlids();

/** A new id of the kind that `prefix` names, e.g. `newId("sbx")` → `sbx_01J…`. */
export function newId<Prefix extends keyof Generated>(prefix: Prefix, ulid = nextUlid()): Generated[Prefix] {
  return `${prefix}_${ulid}` as Generated[Prefix];
}

/** The ULID derived from a time and a digest of 16 bytes or more: deterministic. */
export function ulidFrom(atMs: number, digest: Uint8Array): string {
  let next = 0;
  return ulid(atMs, () => (digest[next++] ?? 0) / 256);
}

/** Names that callers choose: room_id, agent_id; also the `{sandbox}` of a path, which is an agent_id or a sandbox_id. */
export const NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$";

/** agent_id: a name that cannot be mistaken for a sandbox_id. */
export const AGENT_PATTERN = "^(?!sbx_)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$";

/** Permanent id of a room; it names directories. */
export const ROOM_UID_PATTERN = "^rom_[0-9A-HJKMNP-TV-Z]{26}$";

/** A client-supplied request id; the daemon replaces any id that does not match. */
export const REQUEST_ID_PATTERN = "^[\\w.-]{1,128}$";

export const GUEST_CID_MIN = 9100;
export const GUEST_CID_MAX = 9999;
export const GUEST_CIDS = GUEST_CID_MAX - GUEST_CID_MIN + 1;
