/** `roomd key`: the API keys of an organization, by the operator or by a caller with `keys:write`. */
import { type Command, InvalidArgumentError } from "commander";
import { SCOPES, type Scope } from "../../../../shared/api/contract.ts";
import { DEFAULT_GRACE_SECONDS, keyCreate, keyList, keyRevoke, keyRotate } from "../../../../shared/api/orgs.ts";
import type { KeyId } from "../../../../shared/ids.ts";
import { type ConfigOption, withConfigOption } from "../../host/operator.ts";
import { call } from "../../kit/client.ts";
import { choice, command, commandGroup } from "../../kit/command.ts";
import { allItems } from "../../kit/list-options.ts";
import { fieldLines, type JsonOption, print, showValue, table } from "../../kit/output.ts";
import { seconds, secondsOrZero, word } from "../../kit/values.ts";
import { KEY_NOTES, withKeyAccess } from "./key-access.ts";
import { type OrgOption, withOrgOption } from "./org-option.ts";

export function keyCommand(): Command {
  return commandGroup("key", {
    summary: "API keys",
    notes: KEY_NOTES,
    examples: [
      "roomd key create --name ci",
      "roomd key list",
      "roomd key rotate kid_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D --grace 1h",
      "roomd key revoke kid_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D",
    ],
  })
    .addCommand(create())
    .addCommand(list())
    .addCommand(rotate())
    .addCommand(revoke());
}

/** Parser of a repeatable option: collects scopes. */
function scopes(text: string, before: Scope[] = []): Scope[] {
  const scope = SCOPES.find((each) => each === text);
  if (!scope) throw new InvalidArgumentError(`It must be one of ${SCOPES.join(", ")}.`);
  return [...before, scope];
}

interface CreateOptions extends JsonOption, ConfigOption, OrgOption {
  name: string;
  scope?: Scope[];
  room?: string[];
  agent?: string;
  expiresIn?: number;
}

function create(): Command {
  const about = {
    summary: "create a key, which is shown now and never again",
    examples: [
      "roomd key create --name ci",
      "roomd key create --name reader --scope rooms:read --scope drive:read --room build-42 --expires-in 30d",
    ],
  };
  return withConfigOption(withOrgOption(command("create", about)))
    .requiredOption("--name <name>", "purpose of the key")
    .addOption(
      choice("--scope <scope>", "scope of the key; repeatable (default: all scopes)", SCOPES).argParser(scopes),
    )
    .option("--room <room>", "only in this room; repeatable", word)
    .option("--agent <agent>", "only as this agent, and only its sandboxes")
    .option("--expires-in <time>", "it expires after this time, such as 30d", seconds)
    .action(async (options: CreateOptions) => {
      const { name, scope, room, agent, expiresIn } = options;
      const request = {
        name,
        ...(scope === undefined ? {} : { scopes: scope }),
        ...(room === undefined ? {} : { room_ids: room }),
        ...(agent === undefined ? {} : { agent_id: agent }),
        ...(expiresIn === undefined ? {} : { expires_in_seconds: expiresIn }),
      };
      const made = await withKeyAccess(options, {
        asOperator: (operator, org_id) => operator.createKey({ org_id, ...request }),
        asCaller: async () => {
          const { key_id, key } = (await call(keyCreate, { org_id: "self", ...request })).value;
          return { key_id, key };
        },
      });
      await showValue(made, options, fieldLines);
    });
}

function list(): Command {
  const about = { summary: "list an organization's keys", examples: ["roomd key list", "roomd key list --json"] };
  return withConfigOption(withOrgOption(command("list", about))).action(
    async (options: JsonOption & ConfigOption & OrgOption) => {
      const items = await withKeyAccess(options, {
        asOperator: (operator, org_id) => operator.listKeys(org_id),
        asCaller: async () => await allItems((cursor) => call(keyList, { org_id: "self", cursor })),
      });
      await showValue({ items, next_cursor: null }, options, () =>
        table(
          ["KEY", "NAME", "BEGINS", "SCOPES", "ROOMS", "AGENT", "STATE", "CREATED", "LAST USED", "EXPIRES"],
          items.map((key) => [
            key.key_id,
            key.name,
            key.key_prefix,
            key.scopes.length === SCOPES.length ? "all" : key.scopes.join(" "),
            key.room_ids === null ? "all" : key.room_ids.join(" "),
            key.agent_id,
            key.state,
            key.created_at,
            key.last_used_at,
            key.expires_at,
          ]),
        ),
      );
    },
  );
}

function rotate(): Command {
  const about = {
    summary: "replace a key by a new one like it; both are valid during the grace period",
    examples: [
      "roomd key rotate kid_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D",
      "roomd key rotate kid_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D --grace 1d --json",
    ],
  };
  return withConfigOption(command("rotate <key-id>", about))
    .option("--grace <time>", "how long the old one stays valid; 0s: it ends now (default: 1h)", secondsOrZero)
    .action(async (key_id: string, options: JsonOption & ConfigOption & { grace?: number }) => {
      const grace = options.grace ?? DEFAULT_GRACE_SECONDS;
      const { key, replaces, ...made } = await withKeyAccess(options, {
        asOperator: (operator) => operator.rotateKey(key_id as KeyId, grace),
        asCaller: async () => (await call(keyRotate, { org_id: "self", key_id, grace_seconds: grace })).value,
      });
      await showValue({ key_id: made.key_id, key, replaces }, options, () =>
        fieldLines({
          key_id: made.key_id,
          key,
          replaces: key_id,
          old_one_ends_at: replaces.revoked_at ?? replaces.expires_at,
        }),
      );
    });
}

function revoke(): Command {
  const about = {
    summary: "revoke a key; it is refused from now on",
    examples: ["roomd key revoke kid_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D"],
  };
  return withConfigOption(command("revoke <key-id>", about)).action(
    async (key_id: string, options: JsonOption & ConfigOption) => {
      await withKeyAccess<unknown>(options, {
        asOperator: (operator) => operator.revokeKey(key_id as KeyId),
        asCaller: () => call(keyRevoke, { org_id: "self", key_id }),
      });
      if (options.json) await print(JSON.stringify({ key_id, state: "revoked" }));
      else await print(`key ${key_id} is revoked`);
    },
  );
}
