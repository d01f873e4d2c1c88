/**
 * The list of web pages: each path once, with its visitors and its forms' fields. The transport serves only places on the list. Tests
 * derive from it the refusals of every page and form: an unlisted form, and a page without a handler, fail there.
 */
import type { Role } from "../../../shared/api/people/members.ts";

/** A form's fields, by its field `do`; "" for the form without it. */
interface FormPlace {
  /** Fields that could be sent, as examples. */
  fields: Record<string, string>;
  /** Requires a recent proof of the user's identity. */
  wantsProof?: true;
  /** The lowest role that may send it; any if absent. */
  role?: Role;
}

interface PageRoute {
  /** Whether anonymous visitors are sent to sign in, or see it too. */
  who: "person" | "anyone";
  /** Whether the page can be viewed; else it only accepts forms. */
  isSeen: boolean;
  /** A page of the hub, which requires scripts. */
  isHub?: true;
  /** The response to its forms redirects the browser elsewhere. */
  leadsOut?: true;
  forms: Record<string, FormPlace>;
}

/** A read-only page of the hub. */
const HUB: PageRoute = { who: "person", isSeen: true, isHub: true, forms: {} };

const PERSON = { name: "Ada", email: "ada@example.org", password: "a long enough secret" };

export const ROUTES: Record<string, PageRoute> = {
  "/signin": {
    who: "anyone",
    isSeen: true,
    forms: {
      "": { fields: { email: PERSON.email, password: "none" } },
      passkey: { fields: { passkey: "{}" } },
      elsewhere: { fields: {} },
    },
  },
  "/signin/return": { who: "anyone", isSeen: true, forms: { "": { fields: { code: "none", state: "none" } } } },
  "/signout": { who: "anyone", isSeen: false, forms: { "": { fields: {} } } },
  "/signup": {
    who: "anyone",
    isSeen: true,
    forms: {
      "": { fields: { email: "swept@example.org", name: "Ada", note: "" } },
      look: { fields: { token: "none" } },
      ask: { fields: { token: "none", name: "Ada", note: "" } },
      done: { fields: { token: "none", org_name: "ours", name: PERSON.name, password: PERSON.password } },
    },
  },
  "/recover": { who: "anyone", isSeen: true, forms: { "": { fields: { email: "swept@example.org" } } } },
  "/verify": { who: "person", isSeen: true, forms: { "": { fields: { token: "none" } } } },
  "/setup": { who: "anyone", isSeen: true, forms: { "": { fields: { token: "none", step: "done", ...PERSON } } } },
  "/invite/{token}": { who: "anyone", isSeen: true, forms: { "": { fields: PERSON } } },
  "/account": {
    who: "person",
    isSeen: true,
    forms: {
      name: { fields: { name: "Mallory" } },
      org: { fields: { org_id: "org_none" } },
      email: { fields: { email: "swept@example.org" }, wantsProof: true },
    },
  },
  "/account/ways": {
    who: "person",
    isSeen: true,
    forms: {
      password: { fields: { password: "another long secret" }, wantsProof: true },
      begin: { fields: {}, wantsProof: true },
      add: { fields: { name: "laptop", passkey: "{}" }, wantsProof: true },
      remove: { fields: { passkey_id: "pky_none" }, wantsProof: true },
      link: { fields: {}, wantsProof: true },
      unlink: { fields: { identity_id: "idn_none" }, wantsProof: true },
    },
  },
  "/account/keys": {
    who: "person",
    isSeen: true,
    forms: {
      make: { fields: { name: "swept", may: "read", ends: "604800" }, wantsProof: true, role: "member" },
      rotate: { fields: { key_id: "kid_none" }, wantsProof: true, role: "member" },
      revoke: { fields: { key_id: "kid_none" }, role: "member" },
    },
  },
  "/account/sessions": {
    who: "person",
    isSeen: true,
    forms: { "": { fields: { session_id: "others" } } },
  },
  "/account/applications": {
    who: "person",
    isSeen: true,
    forms: { "": { fields: { grant_id: "kid_none" } } },
  },
  // Invalid requests are reported to anyone.
  "/authorize": {
    who: "anyone",
    isSeen: true,
    leadsOut: true,
    forms: {
      allow: { fields: { request: "client_id=none", gives: "all", rooms: "", lasts: "" } },
      deny: { fields: { request: "client_id=none" } },
    },
  },
  "/device": {
    who: "person",
    isSeen: true,
    forms: {
      "": { fields: { step: "look", user_code: "BCDF-GHJK" } },
      allow: {
        fields: { user_code: "BCDF-GHJK", gives: "all", rooms: "", lasts: "" },
        wantsProof: true,
        role: "member",
      },
      deny: { fields: { user_code: "BCDF-GHJK" }, wantsProof: true },
    },
  },
  "/account/data": {
    who: "person",
    isSeen: true,
    forms: {
      export: { fields: {}, wantsProof: true },
      forget: { fields: { email: "nobody@example.org" }, wantsProof: true },
    },
  },
  "/org/members": {
    who: "person",
    isSeen: true,
    forms: {
      role: { fields: { user_id: "usr_none", role: "admin" }, wantsProof: true, role: "admin" },
      remove: { fields: { user_id: "usr_none" }, wantsProof: true },
      withdraw: { fields: { invitation_id: "lnk_none" }, role: "admin" },
      invite: { fields: { email: "", role: "member" }, wantsProof: true, role: "admin" },
    },
  },
  "/": HUB,
  "/rooms": HUB,
  "/rooms/{room_id}": HUB,
  "/rooms/{room_id}/{tab}": HUB,
  "/rooms/{room_id}/agents/{agent_id}": HUB,
  "/rooms/{room_id}/agents/{agent_id}/{tab}": HUB,
  "/audit": HUB,
  "/usage": HUB,
  "/webhooks": HUB,
  "/hosts": HUB,
  "/prompts": { who: "person", isSeen: true, forms: {} },
  "/go/{id}": { who: "person", isSeen: true, forms: {} },
  "/billing": {
    who: "person",
    isSeen: true,
    leadsOut: true,
    forms: {
      buy: { fields: {}, wantsProof: true, role: "owner" },
      portal: { fields: {}, wantsProof: true, role: "owner" },
    },
  },
  "/billing/success": {
    who: "person",
    isSeen: true,
    forms: { "": { fields: { session_id: "none" }, wantsProof: true, role: "owner" } },
  },
  "/org/end": {
    who: "person",
    isSeen: true,
    forms: { "": { fields: { org_name: "none" }, wantsProof: true, role: "owner" } },
  },
};
