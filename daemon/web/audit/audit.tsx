/** The page of the audit: a summary in a sentence, the records that match the filters of the address, and an opened record. */
import type { orgAuditSummary } from "../../../shared/api/audit.ts";
import { Ask } from "../components/ask.tsx";
import { Empty, Head, Line, Loading, Shown, Trouble } from "../components/parts.tsx";
import { countText, visible } from "../components/text.tsx";
import { get } from "../data/api.ts";
import { useLoaded } from "../data/resource.ts";
import { Live } from "../shell/live-state.tsx";
import { hrefWith, place } from "../shell/router.ts";
import { useTitle } from "../shell/title.ts";
import { Chips } from "./chips.tsx";
import { Export } from "./export.tsx";
import { apiQuery, type Filters, filtersOf } from "./filters.ts";
import { OpenRecord } from "./record.tsx";
import { useRecords } from "./records.ts";
import { Rows } from "./rows.tsx";
import { MAX_RECORDS } from "./tail.ts";
import { useChain } from "./verdict.ts";
import { ChainLine, Verify } from "./verify.tsx";

export default function Audit() {
  useTitle("Audit");
  const { query } = place.value;
  const filters = filtersOf(query);
  const opened = query.get("open");
  const key = JSON.stringify(apiQuery(filters));
  // Loaded once: it covers all records so far, and the list shows new ones.
  const summary = useLoaded(`summary ${key}`, (signal) =>
    get<typeof orgAuditSummary>("/v1/orgs/self/audit/summary", apiQuery(filters), signal),
  );
  const chain = useChain();
  const records = useRecords(key, filters);
  const { shown, cursor, problem, isCut } = records;
  const { data } = summary;
  return (
    <>
      <Head title="Audit">
        <Live />
      </Head>
      <div class="audit-summary">
        <Shown of={summary} rows={2}>
          {({ text }) => <p class="lead">{visible(text)}</p>}
        </Shown>
      </div>
      <ChainLine {...chain} />
      <Chips
        filters={filters}
        known={{
          event: data?.events.map(({ event }) => event) ?? [],
          agent: data?.agents.map(({ agent_id }) => agent_id) ?? [],
        }}
      />
      {problem ? <Trouble problem={problem} again={records.more} /> : null}
      <div class={opened ? "audit has-open" : "audit"}>
        <div>
          {cursor === undefined ? (
            problem ? null : (
              <Loading rows={8} />
            )
          ) : shown.length === 0 ? (
            <None filters={filters} />
          ) : (
            <>
              <Rows key={key} records={records} opened={opened} />
              <p class="muted">
                {isCut
                  ? `The newest ${countText(MAX_RECORDS)} are loaded: add filters, or download all of them as a file.`
                  : cursor === null
                    ? `All ${countText(shown.length)} are loaded.`
                    : `${countText(shown.length)} loaded. Scroll for more.`}
              </p>
            </>
          )}
        </div>
        {opened ? <OpenRecord id={opened} known={shown.find(({ audit_id }) => audit_id === opened)} /> : null}
      </div>
      {cursor === undefined && !problem ? null : <BelowRecords chain={chain} filters={filters} />}
    </>
  );
}

/** Rendered once the records are loaded, so that the layout does not shift. */
function BelowRecords({ chain, filters }: { chain: ReturnType<typeof useChain>; filters: Filters }) {
  return (
    <>
      <h2>Chain</h2>
      <Verify chain={chain} />
      <h2>Export</h2>
      <Export filters={filters} />
      <p class="muted">
        <a href="/webhooks">Webhooks</a> send new records to a URL.
      </p>
      <Ask
        names={
          filters.by.outcome === "denied"
            ? ["why-was-it-refused", "who-did-that"]
            : ["who-did-that", "what-left-the-house"]
        }
        given={{ room: filters.by.room, agent: filters.by.agent }}
      />
    </>
  );
}

function None({ filters: { by, hasReads } }: { filters: Filters }) {
  const isFiltered = Object.keys(by).length > 0;
  return (
    <Empty title={isFiltered ? "No matching records." : "No records yet."}>
      {hasReads ? null : (
        <p>
          Calls that only read are hidden: <a href={hrefWith({ reads: "shown" })}>show them</a>.
        </p>
      )}
      {isFiltered ? (
        <p>
          <a href="/audit">Clear filters</a>
        </p>
      ) : (
        <>
          <p>Every action leaves a record, such as:</p>
          <Line words={["room", "create", "build-42"]} />
        </>
      )}
    </Empty>
  );
}
