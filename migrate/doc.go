// Package migrate brings a store of Wow's older layouts into the canonical one, offline:
// it audits, copies, verifies, and removes what was copied or takes the copy back.
//
// Each step is a struct of knobs with a method Run, and works on a server, on one logical
// database of it (the client's), and on every master of a cluster:
//
//	report, err := migrate.Audit{}.Run(ctx, source, file)           // file: an *os.File, empty or from a run that was cut short
//	result, err := migrate.Copy{}.Run(ctx, source, target, file)    // the same server or another one
//	result, err := migrate.Verify{}.Run(ctx, source, target, file)
//	result, err := migrate.Finish{WritersStopped: true}.Run(ctx, source, target, file)
//	result, err := migrate.Rollback{}.Run(ctx, source, target, file) // instead of Finish
//
// The audit writes the manifest, which all later steps go by; its checksum stands for it
// in the target. An Outcome says how a step ended, and is the process's exit code:
// [Clean], [Migratable], [Blocked] or [Unfinished]. An error means [Unfinished]: run the
// same step again, it goes on from where it was cut. What is wrong with the data is no
// error but a [Problem] with a [Code].
//
// Everything that writes to the old keys or to the new ones must be stopped from before
// the audit until after Finish: there is no rolling upgrade between layouts.
package migrate
