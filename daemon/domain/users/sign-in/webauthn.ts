/**
 * WebAuthn for browsers: the relying party, the options for a browser, and verification of its responses. The verification library is
 * loaded on first use.
 */

import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import type { UserId } from "../../../../shared/ids.ts";
import { parseJson } from "../../../core/json.ts";
import type { PasskeyRow } from "../table.ts";

const TIMEOUT_MS = 300_000;
/** Ed25519, ECDSA and RSA, as COSE algorithm numbers. */
const ALGORITHMS = [-8, -7, -257];
const TRANSPORT = /^[a-z-]{1,16}$/;
const MAX_TRANSPORTS = 8;
const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|\[::1\])$/;
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/;

/** Relying party of passkeys. Browsers bind each passkey to a name, and accept no IP address as one. */
export interface PasskeyPlace {
  rp_id: string;
  origin: string;
}

/** Relying party of the service's URL; null if passkeys are impossible. On the host's own loopback it is localhost. */
export function placeOf(url: string): PasskeyPlace | null {
  const place = new URL(url);
  if (LOOPBACK.test(place.hostname)) place.hostname = "localhost";
  if (ADDRESS.test(place.hostname)) return null;
  if (place.protocol !== "https:" && place.hostname !== "localhost") return null;
  return { rp_id: place.hostname, origin: place.origin };
}

export type MakeOptions = PublicKeyCredentialCreationOptionsJSON;
export type UseOptions = PublicKeyCredentialRequestOptionsJSON;

const named = ({ credential_id, transports }: PasskeyRow) => ({
  id: credential_id,
  type: "public-key" as const,
  transports: transports.split(",").filter(Boolean) as AuthenticatorTransport[],
});

/** Options to use one of these, or any if `of` is empty. */
export function useOptions({ rp_id }: PasskeyPlace, challenge: string, of: readonly PasskeyRow[] = []): UseOptions {
  const allowCredentials = of.map(named);
  return { challenge, rpId: rp_id, timeout: TIMEOUT_MS, userVerification: "required", allowCredentials };
}

/** Options to make one for a person; refused by an authenticator that has one of these already. */
export function makeOptions(
  { rp_id }: PasskeyPlace,
  challenge: string,
  { user_id, email, name }: { user_id: UserId; email: string; name: string },
  but: readonly PasskeyRow[],
): MakeOptions {
  return {
    challenge,
    rp: { id: rp_id, name: "roomd" },
    user: { id: handleOf(user_id), name: email, displayName: name },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ alg, type: "public-key" })),
    timeout: TIMEOUT_MS,
    attestation: "none",
    authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
    excludeCredentials: but.map(named),
  };
}

const handleOf = (userId: UserId): string => Buffer.from(userId).toString("base64url");

/** A browser's response. */
export type WebauthnResponse = Record<string, unknown>;

/** A form's field as a response; null if it cannot be one. */
export function readAnswer(text: string): WebauthnResponse | null {
  try {
    const answer: unknown = parseJson(text);
    return typeof answer === "object" && answer !== null && !Array.isArray(answer)
      ? (answer as WebauthnResponse)
      : null;
  } catch {
    return null;
  }
}

async function library() {
  await import("reflect-metadata"); // a dependency of the library needs it when it is loaded
  return { ...(await import("@simplewebauthn/server")), ...(await import("@simplewebauthn/server/helpers")) };
}

/** `challenge` is the one that it answers. */
export interface VerifiedUse {
  challenge: string;
  counter: number;
  is_synced: boolean;
}

/** Verifies a passkey's use here, with verification of its user by a finger, a face or a number. Null: invalid. */
export async function verifyUse(
  { rp_id, origin }: PasskeyPlace,
  answer: WebauthnResponse,
  row: PasskeyRow,
  isOpen: (challenge: string) => boolean,
): Promise<VerifiedUse | null> {
  const { verifyAuthenticationResponse } = await library();
  const response = answer as unknown as AuthenticationResponseJSON;
  let challenge = "";
  try {
    // A discoverable passkey returns its user's handle.
    const handle = response.response.userHandle;
    if (handle !== undefined && handle !== handleOf(row.user_id)) return null;
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: (given) => {
        challenge = given;
        return isOpen(given);
      },
      expectedOrigin: origin,
      expectedRPID: rp_id,
      requireUserVerification: true,
      credential: { id: row.credential_id, publicKey: bytesOf(row.public_key), counter: row.counter },
    });
    const { newCounter, credentialBackedUp } = authenticationInfo;
    return verified ? { challenge, counter: newCounter, is_synced: credentialBackedUp } : null;
  } catch {
    return null;
  }
}

export type VerifiedPasskey = Pick<
  PasskeyRow,
  "credential_id" | "public_key" | "counter" | "transports" | "is_synced"
> &
  Pick<VerifiedUse, "challenge">;

/** Verifies a newly made passkey. Null: invalid. */
export async function verifyMade(
  { rp_id, origin }: PasskeyPlace,
  answer: WebauthnResponse,
  isOpen: (challenge: string) => boolean,
): Promise<VerifiedPasskey | null> {
  const { verifyRegistrationResponse, decodeAttestationObject, isoBase64URL } = await library();
  const response = answer as unknown as RegistrationResponseJSON;
  let challenge = "";
  try {
    // No attestation was requested. An unrequested one could name servers that the library would contact.
    const attested = decodeAttestationObject(isoBase64URL.toBuffer(response.response.attestationObject));
    if (attested.get("fmt") !== "none" && attested.get("attStmt").get("x5c") !== undefined) return null;
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: (given) => {
        challenge = given;
        return isOpen(given);
      },
      expectedOrigin: origin,
      expectedRPID: rp_id,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (!verified) return null;
    const { credential, credentialBackedUp } = registrationInfo;
    return {
      challenge,
      credential_id: credential.id,
      public_key: Buffer.from(credential.publicKey).toString("base64url"),
      counter: credential.counter,
      transports: transportsOf(response).join(","),
      is_synced: credentialBackedUp,
    };
  } catch {
    return null;
  }
}

function transportsOf({ response }: RegistrationResponseJSON): string[] {
  const given: unknown = response.transports;
  const words = Array.isArray(given) ? given.filter((each) => typeof each === "string" && TRANSPORT.test(each)) : [];
  return words.slice(0, MAX_TRANSPORTS);
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(text, "base64url"));
}
