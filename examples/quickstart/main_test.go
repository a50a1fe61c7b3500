package main

func Example() {
	main()
	// Output: alice has 4200 cents at version 1
}
