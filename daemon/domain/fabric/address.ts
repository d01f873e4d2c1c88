/** The address of a message as its sender gives it: parsed, validated, and shown in audit records. Pure. */
import { EVERYONE, TOPIC_PATTERN } from "../../../shared/api/fabric.ts";
import { AGENT_PATTERN } from "../../../shared/ids.ts";
import type { RuleBreak } from "../../core/call/operation.ts";

/** The address: exactly one of these is not null. */
export interface Address {
  destination: string | null;
  destinations: string[] | null;
  topic: string | null;
}

type Given = { [Name in keyof Address]?: Address[Name] | undefined };

const FIELDS = ["destination", "destinations", "topic"] as const satisfies (keyof Address)[];
const TOPIC = new RegExp(TOPIC_PATTERN);
const AGENT = new RegExp(AGENT_PATTERN);
const isName = (destination: string) => destination === EVERYONE || AGENT.test(destination);

/** An empty or null destination or topic counts as absent. */
export function addressOf(input: Given): Address {
  const destinations = input.destinations?.length ? input.destinations : null;
  return { destination: input.destination || null, destinations, topic: input.topic || null };
}

/** Returns the violations that the schema does not find; `bad` are those found by it, `at` is the path of the fields. */
export function addressRules(input: Given, bad: readonly RuleBreak[], at = ""): RuleBreak[] {
  return brokenIn(input, bad, at).map((rule) => ({ ...rule, field: at + rule.field }));
}

function brokenIn(input: Given, bad: readonly RuleBreak[], at: string): RuleBreak[] {
  const address = addressOf(input);
  const given = FIELDS.filter((name) => address[name] !== null);
  if (given.length === 0) {
    // A field that was given and is invalid is not missing.
    if (FIELDS.some((name) => bad.some(({ field }) => isWithin(field, at + name)))) return [];
    return [{ field: "destination", code: "required", message: "Send a destination, destinations or a topic." }];
  }
  if (given.length > 1) {
    const message = `Send one of ${given.join(" and ")}, not both.`;
    return [{ field: String(given[1]), code: "conflicting_fields", message }];
  }
  const wrong = [
    address.destination === null || isName(address.destination) ? null : "destination",
    address.topic === null || TOPIC.test(address.topic) ? null : "topic",
  ].find((field) => field !== null);
  return wrong ? [{ field: wrong, code: "pattern", message: `${wrong} is not a valid name.` }] : [];
}

const isWithin = (field: string, name: string) => field === name || field.startsWith(`${name}[`);

/** Whether the message is addressed to one named agent. */
export function isToOne({ destination, destinations }: Address): boolean {
  return destination === null ? destinations?.length === 1 : destination !== EVERYONE;
}

/** The address for an audit record; a long list is truncated. */
export function shownAddress({ destination, destinations, topic }: Address): Record<string, unknown> {
  if (topic !== null) return { topic };
  return destination === null ? { destinations: destinations?.slice(0, 16) } : { destination };
}

/** The recipients, if the address does not contain them. */
export function shownTo({ topic, destination }: Address, recipients: readonly string[]): Record<string, unknown> {
  return topic !== null || destination === EVERYONE ? { to: recipients.slice(0, 16) } : {};
}
