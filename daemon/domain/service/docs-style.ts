/** Owns how the pages of /docs look: by day and by night, on paper, on a narrow screen, and with no font but the reader's. */

export const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent);
  --soft: color-mix(in srgb, currentColor 6%, transparent); --quiet: color-mix(in srgb, currentColor 65%, transparent); }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 19rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line);
  font-size: .875rem; }
nav ul { list-style: none; margin: 0 0 1rem; padding: 0; }
nav h2 { font-size: .75rem; text-transform: uppercase; letter-spacing: .05em; margin: 0; color: var(--quiet); }
nav a { display: block; padding: .1rem 0; text-decoration: none; color: inherit; }
nav a:hover, nav a:focus { text-decoration: underline; }
main { padding: 1.5rem 2rem 6rem; max-width: 60rem; }
h1 { margin: 0; } h1 small { font-weight: normal; color: var(--quiet); font-size: 1rem; }
section { border-top: 1px solid var(--line); padding-top: .5rem; margin-top: 2.5rem; }
h3 { margin: 0 0 .25rem; font-size: 1.125rem; } h4 { margin: 1rem 0 .25rem; font-size: .875rem; }
p { margin: .25rem 0 .75rem; }
code, pre { font: .8125rem/1.5 ui-monospace, monospace; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; border-radius: .375rem; margin: .25rem 0; }
.method { font-weight: 700; } .quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; } td:first-child { min-width: 9rem; }
summary { cursor: pointer; } main > h2 { margin: 3rem 0 0; font-size: 1.375rem; text-transform: capitalize; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border: 0; } main { padding: 1rem; } }
@media print { nav { display: none; } body { display: block; } }
`;
